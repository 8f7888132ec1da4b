# SPDX-License-Identifier: Apache-2.0
# Tests of prawn.ko, run by tests/e2e/driver_test.py.
foreach(name driver_uapi driver_space driver_wait driver_stress
             driver_life driver_peer driver_quota driver_probe driver_cards
             driver_vanish driver_ptp)
  prawn_guest_test(${name} ${name}.c)
  target_link_libraries(${name} PRIVATE prawn_guest_scene)
endforeach()
foreach(name driver_ptp driver_vanish)
  target_sources(${name} PRIVATE ptp_device.c)
endforeach()

# prawn_fault.ko lets calls of prawn.ko fail; for the same kernel.
if(PRAWN_KDIR AND EXISTS ${PRAWN_KDIR})
  cmake_path(GET PRAWN_KDIR PARENT_PATH release)
  cmake_path(GET release FILENAME release)
  set(fault_dir ${CMAKE_BINARY_DIR}/kernel/${release}/fault)
  add_custom_target(
    prawn_fault_ko
    COMMAND ${CMAKE_COMMAND} -E make_directory ${fault_dir}
            ${CMAKE_BINARY_DIR}/guest/tests
    COMMAND ${CMAKE_COMMAND} -E copy_if_different
            ${CMAKE_CURRENT_SOURCE_DIR}/fault/prawn_fault.c
            ${CMAKE_CURRENT_SOURCE_DIR}/fault/Kbuild ${fault_dir}
    COMMAND make --no-print-directory -C ${PRAWN_KDIR} M=${fault_dir} W=1
            KCFLAGS=-Werror modules
    COMMAND ${CMAKE_COMMAND} -E copy ${fault_dir}/prawn_fault.ko
            ${CMAKE_BINARY_DIR}/guest/tests
    BYPRODUCTS ${CMAKE_BINARY_DIR}/guest/tests/prawn_fault.ko
    COMMENT "prawn_fault.ko for ${release}"
    VERBATIM)
  add_dependencies(prawn-guest-tests prawn_fault_ko)

  # prawn.ko as it is where the kernel has no PTP clocks. Debian's have, so the
  # option is taken away from what is compiled here.
  add_custom_target(
    prawn_no_ptp_ko
    COMMAND
      make --no-print-directory -C ${CMAKE_SOURCE_DIR}/guest-driver/kernel
      KDIR=${PRAWN_KDIR} OUT=${CMAKE_BINARY_DIR}/kernel/${release}/no_ptp W=1
      "KCFLAGS=-Werror -include ${CMAKE_CURRENT_SOURCE_DIR}/no_ptp.h"
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/guest/tests
    COMMAND
      ${CMAKE_COMMAND} -E copy
      ${CMAKE_BINARY_DIR}/kernel/${release}/no_ptp/prawn.ko
      ${CMAKE_BINARY_DIR}/guest/tests/prawn_no_ptp.ko
    BYPRODUCTS ${CMAKE_BINARY_DIR}/guest/tests/prawn_no_ptp.ko
    COMMENT "prawn.ko without PTP for ${release}"
    VERBATIM)
  add_dependencies(prawn-guest-tests prawn_no_ptp_ko)
endif()
