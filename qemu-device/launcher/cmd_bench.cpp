// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

namespace prawn::launch {

int run_bench(session&) {
    return EXIT_OK;
}

}  // namespace prawn::launch
