# SPDX-License-Identifier: Apache-2.0
prawn_test(
  NAME fuzz/depacketizer
  SOURCES depacketizer_fuzz.cpp receive_path.cpp
  LIBS prawn_link_mac prawn_reliable prawn_depacketizer prawn_ipt
       prawn_incoming_dma
  LABEL unit
  TIMEOUT 120)
prawn_fuzz_long(depacketizer test_fuzz_depacketizer)
