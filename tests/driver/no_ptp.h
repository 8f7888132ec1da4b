/* SPDX-License-Identifier: GPL-2.0-only */
/* Included before everything but the kernel's configuration. */
#undef CONFIG_PTP_1588_CLOCK
#undef CONFIG_PTP_1588_CLOCK_MODULE
