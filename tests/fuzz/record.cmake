# SPDX-License-Identifier: Apache-2.0
# The reader of recordings.
prawn_test(
  NAME fuzz/recording
  SOURCES recording_fuzz.cpp
  LIBS prawn_recording PkgConfig::zstd
  LABEL unit
  TIMEOUT 120)
target_include_directories(test_fuzz_recording PRIVATE ${CMAKE_SOURCE_DIR})
prawn_fuzz_long(recording test_fuzz_recording)
