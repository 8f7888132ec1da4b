# SPDX-License-Identifier: Apache-2.0
# The control plane of the card.
foreach(test csr notifier admin_queue ptp_clock)
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp main.cpp
    LIBS prawn_${test}
    LABEL unit
    TIMEOUT 60)
endforeach()

prawn_test(
  NAME unit/bridge
  SOURCES bridge_test.cpp
  LIBS prawn_sim prawn_bridge prawn_vfio_user_client
  LABEL unit
  TIMEOUT 120)
prawn_test(
  NAME unit/config
  SOURCES config_test.cpp main.cpp
  LIBS prawn_sim
  LABEL unit
  TIMEOUT 60)
target_compile_definitions(
  test_unit_config PRIVATE PRAWN_EXAMPLES="${CMAKE_SOURCE_DIR}/examples"
                           PRAWN_PROFILES="${CMAKE_SOURCE_DIR}/profiles")
