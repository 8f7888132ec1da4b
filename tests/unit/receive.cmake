# SPDX-License-Identifier: Apache-2.0
# The receive path and the fabric.
foreach(test reliable link_mac depacketizer ipt incoming_dma)
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp main.cpp
    LIBS prawn_${test}
    LABEL unit
    TIMEOUT 60)
endforeach()
prawn_test(
  NAME unit/fabric
  SOURCES fabric_test.cpp main.cpp
  LIBS prawn_fabric prawn_link_mac
  LABEL unit
  TIMEOUT 120)
