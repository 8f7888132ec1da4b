# SPDX-License-Identifier: Apache-2.0
# The tools' command lines, on the host.
add_test(NAME driver/tools COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/tools_test.py
                                   ${CMAKE_BINARY_DIR}/guest/bin)
set_tests_properties(driver/tools PROPERTIES LABELS unit TIMEOUT 120)
