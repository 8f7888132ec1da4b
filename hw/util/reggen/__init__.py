# SPDX-License-Identifier: Apache-2.0
"""Reads the register source (hw/data) and writes it in other languages."""
