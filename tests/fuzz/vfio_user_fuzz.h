// SPDX-License-Identifier: Apache-2.0

#ifndef PRAWN_TESTS_FUZZ_VFIO_USER_FUZZ_H
#define PRAWN_TESTS_FUZZ_VFIO_USER_FUZZ_H

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

#endif
