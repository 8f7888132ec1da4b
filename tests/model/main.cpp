// SPDX-License-Identifier: Apache-2.0
#include "model_bench.h"

int sc_main(int argc, char** argv) {
    return prawn::model::run_bench(argc, argv);
}
