# SPDX-License-Identifier: Apache-2.0
# Protection tests and tests of the library in two guests.
set(protection
    python3 ${CMAKE_CURRENT_SOURCE_DIR}/protection_test.py --launch
    $<TARGET_FILE:prawn-launch> --root ${CMAKE_SOURCE_DIR} --build
    ${CMAKE_BINARY_DIR})
prawn_e2e(protection 1200 ${protection})
add_test(NAME e2e/protection_slow COMMAND ${protection} --tier slow)
set_tests_properties(e2e/protection_slow
                     PROPERTIES LABELS slow TIMEOUT 5400 RUN_SERIAL TRUE)
