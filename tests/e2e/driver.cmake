# SPDX-License-Identifier: Apache-2.0
# Tests of the kernel module in one guest and in two.
set(driver
    python3 ${CMAKE_CURRENT_SOURCE_DIR}/driver_test.py --launch
    $<TARGET_FILE:prawn-launch> --root ${CMAKE_SOURCE_DIR} --build
    ${CMAKE_BINARY_DIR})
prawn_e2e(driver 600 ${driver})
prawn_e2e(driver_peer 600 ${driver} --nodes 2)
