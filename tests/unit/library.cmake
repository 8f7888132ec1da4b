# SPDX-License-Identifier: Apache-2.0
# libvmmc on a card of the test's own: no driver, no guest.
prawn_test(
  NAME unit/vmmc_pins NO_SYSTEMC
  SOURCES vmmc_pins_test.cpp
  LIBS vmmc_objects GTest::gtest_main)
target_include_directories(test_unit_vmmc_pins
                           PRIVATE ${CMAKE_SOURCE_DIR}/guest-driver/lib)

# The library without card.c, which the test replaces.
prawn_test(
  NAME unit/vmmc NO_SYSTEMC
  SOURCES vmmc_test.cpp
  LIBS GTest::gtest_main)
target_sources(
  test_unit_vmmc
  PRIVATE ${CMAKE_SOURCE_DIR}/guest-driver/lib/vmmc.c
          ${CMAKE_SOURCE_DIR}/guest-driver/lib/send.c
          ${CMAKE_SOURCE_DIR}/guest-driver/lib/pins.c
          ${CMAKE_SOURCE_DIR}/guest-driver/lib/error.c)
set_target_properties(test_unit_vmmc PROPERTIES C_EXTENSIONS ON)
target_compile_definitions(test_unit_vmmc PRIVATE _GNU_SOURCE)
# C in kernel style: no -Wconversion for it.
target_compile_options(
  test_unit_vmmc PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wno-conversion
                         -Wno-pedantic -Wno-sign-conversion>)
target_include_directories(
  test_unit_vmmc
  PRIVATE ${CMAKE_SOURCE_DIR}/guest-driver/lib
          ${CMAKE_SOURCE_DIR}/guest-driver/include
          ${CMAKE_SOURCE_DIR}/guest-driver/include/uapi)
target_link_libraries(test_unit_vmmc PRIVATE Threads::Threads)

# What is installed; a sanitized library cannot be linked without its runtime.
if(NOT PRAWN_SANITIZE AND NOT PRAWN_TSAN)
  add_test(
    NAME unit/library_install
    COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/library_install_test.py
            ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(unit/library_install PROPERTIES LABELS unit TIMEOUT 120)
endif()
