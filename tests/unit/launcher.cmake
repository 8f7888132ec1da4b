# SPDX-License-Identifier: Apache-2.0
# The launcher's own parts, without guests.
if(TARGET prawn_launch)
  prawn_test(
    NAME unit/launcher NO_SYSTEMC
    SOURCES launcher_test.cpp launcher_options_test.cpp
    LIBS prawn_launch GTest::gtest_main
    LABEL unit
    TIMEOUT 60)
  add_test(
    NAME unit/launcher_cli
    COMMAND
      ${CMAKE_COMMAND} -E env python3
      ${CMAKE_SOURCE_DIR}/tests/unit/launcher_cli_test.py
      $<TARGET_FILE:prawn-launch> ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(unit/launcher_cli PROPERTIES LABELS unit TIMEOUT 60)
endif()
add_test(NAME unit/launcher_script
         COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/unit/launcher_script_test.py
                 ${CMAKE_SOURCE_DIR})
set_tests_properties(unit/launcher_script PROPERTIES LABELS unit TIMEOUT 120)
