# SPDX-License-Identifier: Apache-2.0
# Recordings of host ports.
prawn_test(
  NAME unit/recording
  SOURCES recording_test.cpp main.cpp
  LIBS prawn_recording PkgConfig::zstd
  LABEL unit
  TIMEOUT 300)
prawn_test(
  NAME unit/recorder
  SOURCES recorder_test.cpp main.cpp
  LIBS prawn_recorder prawn_dma_engine prawn_host
  LABEL unit
  TIMEOUT 60)
