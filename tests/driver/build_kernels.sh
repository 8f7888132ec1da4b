#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds prawn.ko with W=1, warnings fatal, against the kernels it promises to
# build for: Debian 12's own (6.1), Debian 13's own (6.12), and the newest of
# Debian 13's backports. Headers of those that this machine does not have, and
# the compiler that goes with them, come from the machine's own Debian mirror
# into chroots below the cache directory; nothing else is changed.
#
#   build_kernels.sh [--cache DIR] [--refresh]
#
# Exit status: 0 all built, 1 one did not, 77 the mirror or a tool is missing.
set -euo pipefail

ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
readonly ROOT
cache=$ROOT/build/kernels
refresh=

say() { printf 'build_kernels: %s\n' "$*"; }
skip() {
    say "skipped: $*"
    exit 77
}

while (($#)); do
    case $1 in
    --cache)
        [[ $# -gt 1 ]] || { say "--cache wants a directory"; exit 2; }
        cache=$2
        shift
        ;;
    --refresh) refresh=1 ;;
    *)
        say "usage: build_kernels.sh [--cache DIR] [--refresh]"
        exit 2
        ;;
    esac
    shift
done
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

mirror() { # the machine's own, out of either format of apt's sources
    {
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
            sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*\) .*/\2/p'
        cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
            sed -n 's/^URIs: *\(http[^ ]*\).*/\1/p'
    } | grep -E '/debian/?$' | head -n 1
}

# inside DIR COMMAND...: in the chroot, with /proc (objtool reads it)
inside() {
    local dir=$1
    shift
    # shellcheck disable=SC2016
    local enter='mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
    if ((EUID == 0)); then
        unshare --mount sh -c "$enter" "$dir" "$@"
    else
        mmdebstrap --unshare-helper sh -c "$enter" "$dir" "$@"
    fi
}

# chroot_for SUITE PATTERN...: headers of the newest kernel of each pattern
chroot_for() {
    local suite=$1 dir=$cache/$1 log=$cache/$1.log pattern hook
    shift
    if [[ -e $dir/.complete && ! $refresh ]]; then
        return
    fi
    say "fetching headers and compiler of $suite (log: $log)"
    hook=
    for pattern; do
        hook+="apt-get install -y --no-install-recommends \$(apt-cache search"
        hook+=" --names-only '^linux-headers-$pattern-amd64\$' |"
        hook+=" cut -d' ' -f1 | sort -V | tail -n 1) && "
    done
    if [[ -e $dir ]]; then
        remove "$dir"
    fi
    mmdebstrap --variant=apt --include=make,perl \
        --aptopt='APT::Install-Recommends "false"' \
        --customize-hook="chroot \"\$1\" sh -c \"$(sed 's/[\\"$]/\\&/g' \
            <<<"${hook}true")\"" \
        "$suite" "$dir" \
        "deb $url $suite main" "deb $url $suite-backports main" \
        >"$log" 2>&1 || {
        tail -n 15 "$log"
        skip "no headers of $suite from $url"
    }
    inside "$dir" touch /.complete
}

remove() {
    if ((EUID == 0)); then
        rm -rf "$1"
    else
        mmdebstrap --unshare-helper rm -rf "$1"
    fi
}

failed=0
built=()

# judge RELEASE LOG STATUS
judge() {
    if (($3)) || grep -iE 'warning' "$2"; then
        tail -n 30 "$2"
        say "$1: FAILED (whole output in $2)"
        failed=1
    else
        say "$1: built, no warnings"
        built+=("$1")
    fi
}

build_here() { # build_here RELEASE
    local log=$cache/build-$1.log status=0
    rm -rf "$cache/out-$1"
    make -C "$ROOT/guest-driver/kernel" KDIR="/lib/modules/$1/build" \
        OUT="$cache/out-$1" W=1 KCFLAGS=-Werror >"$log" 2>&1 || status=$?
    judge "$1" "$log" "$status"
}

build_inside() { # build_inside SUITE: every kernel of that chroot
    local dir=$cache/$1 release log status
    inside "$dir" rm -rf /src
    inside "$dir" mkdir -p /src
    tar -C "$ROOT" -cf - guest-driver/kernel guest-driver/include hw/autogen |
        inside "$dir" tar -C /src -xf - --no-same-owner
    for release in "$dir"/lib/modules/*/build; do
        release=$(basename "$(dirname "$release")")
        log=$cache/build-$release.log
        status=0
        inside "$dir" make -C /src/guest-driver/kernel \
            KDIR="/lib/modules/$release/build" OUT="/src/out-$release" \
            W=1 KCFLAGS=-Werror >"$log" 2>&1 || status=$?
        judge "$release" "$log" "$status"
    done
}

command -v mmdebstrap >/dev/null || skip "no mmdebstrap: ./prawn setup"
url=$(mirror)
[[ $url ]] || skip "no Debian mirror in apt's sources"

here=$(basename "$(dirname "$(
    ls -d /lib/modules/6.1.*-amd64/build 2>/dev/null | sort -V | tail -n 1
)")")
if [[ $here == 6.1.* ]]; then
    build_here "$here"
else
    chroot_for bookworm '6\.1\.[0-9.-]+'
    build_inside bookworm
fi
chroot_for trixie '6\.12\.[0-9.]+\+deb13' '[0-9.]+\+deb13'
build_inside trixie

for want in '6\.1\.' '6\.12\.'; do
    if ! grep -qE "^$want" <(printf '%s\n' "${built[@]}"); then
        say "FAILED: none of the kernels built is a $want"
        failed=1
    fi
done
if ((${#built[@]} < 3)); then
    say "FAILED: wanted three kernels, built ${#built[@]}"
    failed=1
fi
exit "$failed"
