# SPDX-License-Identifier: Apache-2.0
# The vfio-user protocol parser.

find_package(spdlog REQUIRED)

add_executable(vfio_user_fuzz EXCLUDE_FROM_ALL vfio_user_fuzz.cpp vfio_user_fuzz_main.cpp)
target_link_libraries(vfio_user_fuzz PRIVATE prawn_warnings prawn_vfio_user
                                             spdlog::spdlog)
add_test(NAME fuzz/vfio_user COMMAND vfio_user_fuzz)
set_tests_properties(fuzz/vfio_user PROPERTIES LABELS "unit;sanitized" TIMEOUT 300)
prawn_fuzz_long(vfio_user vfio_user_fuzz)

# With clang also as a libFuzzer binary: vfio_user_libfuzzer CORPUS_DIR
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_executable(vfio_user_libfuzzer vfio_user_fuzz.cpp)
  target_compile_options(vfio_user_libfuzzer PRIVATE -fsanitize=fuzzer)
  target_link_options(vfio_user_libfuzzer PRIVATE -fsanitize=fuzzer)
  target_link_libraries(
    vfio_user_libfuzzer PRIVATE prawn_warnings prawn_vfio_user spdlog::spdlog)
endif()
add_dependencies(prawn-unit-tests vfio_user_fuzz)
