# SPDX-License-Identifier: Apache-2.0
prawn_e2e(
  synchronized 1800 python3 ${CMAKE_CURRENT_SOURCE_DIR}/synchronized_test.py
  --launch $<TARGET_FILE:prawn-launch> --root ${CMAKE_SOURCE_DIR} --build
  ${CMAKE_BINARY_DIR})
