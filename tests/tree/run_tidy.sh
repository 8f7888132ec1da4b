#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the model and the device: every finding is an error.
# Usage: run_tidy.sh SOURCE BUILD
set -euo pipefail
cd "$1"
[[ $(clang-tidy --version 2>&1) == *" version 14."* ]] || {
    echo "skipped: no clang-tidy 14 here (Debian 12 has it)"
    exit 77
}
mapfile -t files < <(git ls-files 'tlm/*.cpp' 'qemu-device/*.cpp')
((${#files[@]})) || {
    echo "no files to check: run this in a git checkout" >&2
    exit 1
}
# clang cannot read what GCC has precompiled.
commands=$(mktemp -d)
trap 'rm -r "$commands"' EXIT
sed -E 's/-Winvalid-pch|-fpch-preprocess|-include [^ ]*cmake_pch\.hxx//g' \
    "$2/compile_commands.json" >"$commands/compile_commands.json"
printf '%s\0' "${files[@]}" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$commands"
