#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a sanitizer preset and runs its tests of one label (sanitized or
# model), or those of them below DIRECTORY.
# Usage: run.sh SOURCE PRESET LABEL [DIRECTORY]
set -euo pipefail
cd "$1"
preset=$2
label=$3
directory=${4:-}
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_SLOPPINESS=pch_defines,time_macros
fi
cmake --preset "$preset" >/dev/null
log=build/$preset/build.log
targets=("prawn-${label/sanitized/unit}-tests")
if [[ $directory ]]; then
    mapfile -t targets < <(ninja -C "build/$preset" -t targets all |
        sed -n "s|^\(test_${directory}_[^:/]*\): phony.*|\1|p")
fi
ninja -C "build/$preset" "${targets[@]}" >"$log" 2>&1 || {
    grep -E -A 3 'FAILED|error' "$log" | head -n 40
    echo "building preset $preset failed: the whole output is in $log"
    exit 1
}
# A leak or a finding ends the test with a status of its own.
# No fake stacks: the model's threads switch stacks behind their back.
export ASAN_OPTIONS=detect_stack_use_after_return=0:exitcode=99
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=exitcode=99:second_deadlock_stack=1
ctest --test-dir "build/$preset" --no-tests=error --output-on-failure \
    -j "$(nproc)" -L "^$label\$" ${directory:+-R "^$directory/"}
