# SPDX-License-Identifier: Apache-2.0
# Tests of the kernel module in one guest.
prawn_e2e(
  driver 600 python3 ${CMAKE_CURRENT_SOURCE_DIR}/driver_test.py --launch
  $<TARGET_FILE:prawn-launch> --root ${CMAKE_SOURCE_DIR} --build
  ${CMAKE_BINARY_DIR})
