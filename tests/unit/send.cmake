# SPDX-License-Identifier: Apache-2.0
# The send path of the card, each block alone; then the same tests again with
# twins, which delay and refuse at random, in front of the block's inputs.
foreach(test opt outgoing_fifo command_queue command_queue_life packetizer
             packetizer_end packetizer_share)
  string(REGEX REPLACE "_(end|life|share)$" "" block ${test})
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp
    LIBS prawn_${block}
    LABEL unit
    TIMEOUT 60)
  foreach(seed 1 7)
    add_test(NAME unit/${test}/twins-${seed} COMMAND test_unit_${test} --twins
                                                     ${seed})
    set_tests_properties(unit/${test}/twins-${seed}
                         PROPERTIES LABELS "unit;sanitized" TIMEOUT 60)
  endforeach()
endforeach()
