# SPDX-License-Identifier: Apache-2.0
# Shared by all directories: warnings, SystemC, and how to add a test.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(systemc REQUIRED IMPORTED_TARGET systemc)

add_library(prawn_warnings INTERFACE)
target_compile_options(
  prawn_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                           -Werror)

# SystemC's own headers are exempt from our warnings.
add_library(prawn_systemc INTERFACE)
target_link_libraries(prawn_systemc INTERFACE PkgConfig::systemc
                                              Threads::Threads)
get_target_property(_sc_inc PkgConfig::systemc INTERFACE_INCLUDE_DIRECTORIES)
if(_sc_inc)
  target_include_directories(prawn_systemc SYSTEM INTERFACE ${_sc_inc})
endif()

add_library(prawn_headers INTERFACE)
target_include_directories(
  prawn_headers INTERFACE ${CMAKE_SOURCE_DIR}/tlm ${CMAKE_SOURCE_DIR}/hw/autogen)

if(PRAWN_SANITIZE OR PRAWN_TSAN)
  # GCC 12 sees uninitialized members in instrumented std::regex.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(PRAWN_SANITIZE)
  # -O1 -g1: names and lines in reports, and a build in minutes.
  add_compile_options(-O1 -g1 -fsanitize=address,undefined
                      -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(PRAWN_TSAN)
  add_compile_options(-O1 -g1 -fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()

# Builds every test executable and nothing else.
add_custom_target(prawn-tests)

# prawn_test(NAME dir/block SOURCES a.cpp ... LIBS x ... LABEL unit TIMEOUT 60)
# One executable per test: SystemC cannot be elaborated twice in a process.
function(prawn_test)
  cmake_parse_arguments(T "" "NAME;LABEL;TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  if(NOT T_LABEL)
    set(T_LABEL unit)
  endif()
  string(REPLACE "/" "_" target "test_${T_NAME}")
  add_executable(${target} ${T_SOURCES})
  target_link_libraries(${target} PRIVATE prawn_warnings prawn_headers
                                          ${T_LIBS} GTest::gtest)
  add_dependencies(prawn-tests ${target})
  add_test(NAME ${T_NAME} COMMAND ${target} ${T_ARGS})
  set_tests_properties(
    ${T_NAME} PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT}
                         SKIP_RETURN_CODE 77)
endfunction()
find_package(GTest REQUIRED)
