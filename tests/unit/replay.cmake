# SPDX-License-Identifier: Apache-2.0
# Replay of recordings: its parts that need no model.
foreach(test replay_memory replay_causes replay_match)
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp main.cpp
    LIBS prawn_replay
    LABEL unit
    TIMEOUT 60)
endforeach()
