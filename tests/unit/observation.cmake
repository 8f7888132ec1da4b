# SPDX-License-Identifier: Apache-2.0
# Counters, CRC, the event stream and its views.
find_package(nlohmann_json REQUIRED)

foreach(test crc32c counters events perfetto pcapng)
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp main.cpp
    LIBS prawn_trace nlohmann_json::nlohmann_json
    LABEL unit
    TIMEOUT 120)
endforeach()
target_compile_definitions(
  test_unit_pcapng
  PRIVATE PRAWN_DISSECTOR="${CMAKE_SOURCE_DIR}/docs/wireshark/prawn.lua"
          PRAWN_OBSERVATION_PAGE="${CMAKE_SOURCE_DIR}/docs/observation.md")
