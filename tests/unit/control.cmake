# SPDX-License-Identifier: Apache-2.0
# The control plane of the card.
foreach(test csr notifier admin_queue)
  prawn_test(
    NAME unit/${test}
    SOURCES ${test}_test.cpp main.cpp
    LIBS prawn_${test}
    LABEL unit
    TIMEOUT 60)
endforeach()
