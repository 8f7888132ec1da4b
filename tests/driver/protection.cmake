# SPDX-License-Identifier: Apache-2.0
# Protection tests, run by tests/e2e/protection_test.py.

add_library(prawn_guest_scene STATIC hostile_raw.c protect_scene.c lib_scene.c)
set_target_properties(prawn_guest_scene PROPERTIES C_EXTENSIONS ON
                                                   POSITION_INDEPENDENT_CODE ON)
target_compile_definitions(prawn_guest_scene PRIVATE _GNU_SOURCE)
target_compile_options(prawn_guest_scene PRIVATE -O2 -Wall -Wextra -Wshadow
                                                 -Werror -fno-sanitize=all)
target_include_directories(
  prawn_guest_scene PUBLIC ${CMAKE_SOURCE_DIR}/guest-driver/include
                           ${CMAKE_SOURCE_DIR}/guest-driver/include/uapi
                           ${CMAKE_SOURCE_DIR}/hw/autogen)

target_link_libraries(prawn_guest_scene PUBLIC vmmc_static)

foreach(
  name
  protect_peer
  protect_victim
  protect_end
  hostile_commands
  hostile_garbage
  hostile_doorbell
  hostile_mappings
  hostile_withdrawn
  hostile_exhaust
  hostile_ioctl
  hostile_kill
  lib_send
  lib_notify
  lib_threads
  lib_access
  lib_withdraw
  lib_pins)
  prawn_guest_test(${name} ${name}.c)
  target_link_libraries(${name} PRIVATE prawn_guest_scene)
endforeach()
