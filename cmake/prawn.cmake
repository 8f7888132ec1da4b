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

# Parsing SystemC takes longer than compiling most of what uses it: one
# precompiled header for all that is compiled with the same options.
function(prawn_precompiled target headers)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${target}.cpp CONTENT "")
  add_library(${target} OBJECT ${CMAKE_BINARY_DIR}/${target}.cpp)
  target_precompile_headers(${target} PRIVATE ${headers})
  target_link_libraries(${target} PRIVATE prawn_warnings prawn_headers
                                          prawn_systemc ${ARGN})
endfunction()
# So that ccache can see through it (see also CCACHE_SLOPPINESS in ./prawn).
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
prawn_precompiled(prawn_model_headers "<systemc>;<tlm>")

find_package(GTest REQUIRED)
prawn_precompiled(prawn_test_headers "<systemc>;<tlm>;<gtest/gtest.h>"
                  GTest::gtest)
# What is tested is optimized, the tests are not: that halves the build.
target_compile_options(prawn_test_headers PRIVATE -O0)

# Each builds the test executables of one label and nothing else. Those of the
# unit tests are not part of `all`: the default tier builds and runs them under
# sanitizers only (tests/sanitize), which is why they have a second label.
add_custom_target(prawn-unit-tests)
add_custom_target(prawn-model-tests)

# prawn_test(NAME dir/block SOURCES a.cpp ... LIBS x ... LABEL unit TIMEOUT 60)
# One executable per test: SystemC cannot be elaborated twice in a process.
# NO_SYSTEMC: neither includes nor links it.
function(prawn_test)
  cmake_parse_arguments(T "NO_SYSTEMC" "NAME;LABEL;TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
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
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  if(NOT T_NO_SYSTEMC)
    target_precompile_headers(${target} REUSE_FROM prawn_test_headers)
  endif()
  add_dependencies(prawn-${T_LABEL}-tests ${target})
  if(T_LABEL STREQUAL unit)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    set(T_LABEL unit sanitized)
  endif()
  add_test(NAME ${T_NAME} COMMAND ${target} ${T_ARGS})
  set_tests_properties(
    ${T_NAME} PROPERTIES LABELS "${T_LABEL}" TIMEOUT ${T_TIMEOUT}
                         SKIP_RETURN_CODE 77)
endfunction()
