# SPDX-License-Identifier: Apache-2.0
# Tests of the kernel module in one guest and in two.
set(driver
    python3 ${CMAKE_CURRENT_SOURCE_DIR}/driver_test.py --launch
    $<TARGET_FILE:prawn-launch> --root ${CMAKE_SOURCE_DIR} --build
    ${CMAKE_BINARY_DIR})
prawn_e2e(driver 600 ${driver})
prawn_e2e(driver_peer 600 ${driver} --nodes 2)

# Cards that misbehave, and cards that vanish.
add_executable(bad_card bad_card.cpp)
target_link_libraries(bad_card PRIVATE prawn_warnings prawn_headers
                                       prawn_vfio_user)
prawn_e2e(
  driver_cards
  600
  python3
  ${CMAKE_CURRENT_SOURCE_DIR}/driver_cards_test.py
  --launch
  $<TARGET_FILE:prawn-launch>
  --root
  ${CMAKE_SOURCE_DIR}
  --build
  ${CMAKE_BINARY_DIR}
  --sim
  $<TARGET_FILE:prawn-sim>
  --bad-card
  $<TARGET_FILE:bad_card>)
