# SPDX-License-Identifier: Apache-2.0
# Guests in step with the model.
prawn_test(
  NAME unit/pacer
  SOURCES pacer_test.cpp
  LIBS prawn_sim prawn_lockstep prawn_vfio_user_client
  LABEL unit
  TIMEOUT 300)
