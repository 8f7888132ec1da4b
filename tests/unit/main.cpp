// SPDX-License-Identifier: Apache-2.0
// Entry of a unit test that links SystemC, whose library brings main().

#include <gtest/gtest.h>

#include <systemc>

int sc_main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
