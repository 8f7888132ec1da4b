# SPDX-License-Identifier: Apache-2.0
# The module against every kernel it promises to build for.
add_test(NAME driver/build-kernels
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/build_kernels.sh --cache
                 ${CMAKE_SOURCE_DIR}/build/kernels)
set_tests_properties(
  driver/build-kernels PROPERTIES LABELS slow TIMEOUT 900 SKIP_RETURN_CODE 77
                                  RUN_SERIAL ON)
