# SPDX-License-Identifier: Apache-2.0
# Tests of prawn.ko, run by tests/e2e/driver_test.py.
foreach(name driver_uapi driver_space driver_wait driver_stress
             driver_life driver_peer driver_quota)
  prawn_guest_test(${name} ${name}.c)
  target_link_libraries(${name} PRIVATE prawn_guest_scene)
endforeach()
