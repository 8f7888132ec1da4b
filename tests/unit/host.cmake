# SPDX-License-Identifier: Apache-2.0
# Host port, bus, DMA engine, UTLB, profiles.
foreach(test bus_medium host_bus grant_checker profile)
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp main.cpp
    LIBS prawn_dma_engine prawn_host
    LABEL unit
    TIMEOUT 60
    ARGS ${CMAKE_SOURCE_DIR}/profiles)
endforeach()
foreach(test dma_engine utlb utlb_race utlb_cache)
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp main.cpp
    LIBS prawn_utlb prawn_dma_engine prawn_host
    LABEL unit
    TIMEOUT 120)
endforeach()
