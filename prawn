#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The one launcher of Prawn. This script needs nothing but bash, coreutils and
# apt: it installs and extracts what is missing (setup), builds, and hands over
# to prawn-launch (qemu-device/launcher), which does the rest. Everything it
# makes lies under build/; the only things it changes elsewhere are ccache's
# cache and the list of installed Debian packages, and it says which before it
# does.
set -euo pipefail

readonly PRAWN_VERSION=0.1.0
ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
readonly ROOT
readonly PRESET=${PRAWN_PRESET:-release}
readonly OUT=$ROOT/build/$PRESET
readonly TRACE=$OUT/tlm/record/prawn-trace
readonly QEMU_DIR=$ROOT/build/qemu
readonly CONF=$ROOT/build/setup.conf
readonly HELP_DIR=$ROOT/qemu-device/launcher/help

# The one place that lists Debian packages. The kernel pair is found apart.
readonly PACKAGES=(
    # build
    g++ make cmake ninja-build ccache pkg-config python3
    # model and launcher
    libsystemc-dev libcli11-dev libspdlog-dev libfmt-dev libtomlplusplus-dev
    nlohmann-json3-dev libzstd-dev
    # tests and benchmarks; verilator and tshark judge our files
    libgtest-dev libgmock-dev libbenchmark-dev tshark verilator
    # guests: image, kernel module, private QEMU
    kmod cpio xz-utils zstd libelf-dev mmdebstrap
    debian-archive-keyring ca-certificates util-linux
)
wanted=("${PACKAGES[@]}")

verbose=0

say() { printf 'prawn: %s\n' "$*" >&2; }
die() { # die STATUS MESSAGE...: one line: what, where, the mend
    local status=$1
    shift
    say "error: $*"
    exit "$status"
}
show() { if ((verbose)); then printf '+ %s\n' "${*@Q}" >&2; fi; }
run() {
    show "$@"
    "$@"
}

usage() {
    cat <<'END'
usage: ./prawn COMMAND [options]

Prawn is a SHRIMP-style network card that exists only in simulation. Unmodified
QEMU guests see it as a PCI device; one SystemC process serves all the cards.

  demo    boot two guests, send data from a process in one to a process in the
          other, check every byte, print latency and bandwidth
  boot    boot guests with the card: a shell, or one command in each of them
  sim     run the card model alone and wait for your own QEMUs
  trace   look at what --record of demo, boot and sim has written
  bench   measure how fast the simulator itself is
  test    build everything and run the tests
  setup   install and extract what is missing (every other command does it too)

Start with    ./prawn demo
Then try      ./prawn boot
Each command explains itself:    ./prawn COMMAND --help

  --help, help [COMMAND]   this text, or a command's
  --version                the version

Environment: PRAWN_PRESET   CMake preset to build with (default: release)
             PRAWN_KERNEL   release of the guests' kernel, such as
                            6.1.0-57-amd64 (default: newest with headers)

Exit status: 0 ok, 1 a check failed, 2 wrong usage, 3 set-up or build failed,
4 a part died (a QEMU, the model, a guest), 130 interrupted.
END
}

help_for() {
    [[ -r $HELP_DIR/$1.txt ]] ||
        die 2 "no such command: $1 (./prawn help lists them)"
    cat "$HELP_DIR/$1.txt"
}

# ---------------------------------------------------------------- set-up ----

as_root() {
    if ((EUID == 0)); then
        run "$@"
    elif command -v sudo >/dev/null; then
        run sudo -- "$@"
    else
        die 3 "must install packages, but you are not root and there is no" \
            "sudo: run './prawn setup' once as root"
    fi
}

update_lists() {
    as_root apt-get -q update ||
        die 3 "apt-get could not update its lists (its message is above):" \
            "may you use sudo, is there a network?"
}

# What root has made for somebody else's tree belongs to that somebody, or
# nothing but root could go on with it.
give_to_owner() {
    local owner
    owner=$(stat -c %u:%g "$ROOT")
    ((EUID != 0)) || [[ $owner == 0:* ]] || chown -Rh "$owner" "$ROOT/build"
}

take_lock() { # one of us at a time sets up or builds in this tree
    local path
    mkdir -p "$ROOT/build" 2>/dev/null ||
        die 3 "$ROOT/build cannot be made: is the disk full, is this" \
            "tree yours ($(id -un))?"
    for path in "$ROOT/build" "$ROOT/build/.lock" "$OUT" "$CONF"; do
        [[ ! -e $path || -w $path ]] ||
            die 3 "$path is $(stat -c %U "$path")'s, and $(id -un) may not" \
                "write there: run 'sudo chown -R $(id -un) $ROOT/build'"
    done
    exec 9>"$ROOT/build/.lock"
    if ! flock -n 9; then
        say "waiting for another ./prawn that sets up or builds here"
        flock 9
    fi
}

installed() { # the packages of "$@" that are installed, one a line
    # it fails when it has not heard of one, which is no failure here
    { dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null ||
        true; } | sed -n 's/ installed$//p'
}

missing_packages() {
    local have package
    have=" $(installed "${wanted[@]}" | tr '\n' ' ')"
    for package in "${wanted[@]}"; do
        [[ $have == *" $package "* ]] || printf '%s\n' "$package"
    done
}

find_kernel() { # newest Debian kernel that is here with its headers
    local image release
    if [[ -n ${PRAWN_KERNEL:-} ]]; then
        [[ -r /boot/vmlinuz-$PRAWN_KERNEL &&
            -e /lib/modules/$PRAWN_KERNEL/build/Makefile ]] || return 1
        printf '%s\n' "$PRAWN_KERNEL"
        return
    fi
    for image in $(printf '%s\n' /boot/vmlinuz-*-amd64 | sort -Vr); do
        release=${image#/boot/vmlinuz-}
        case $release in *-cloud-amd64 | *-rt-amd64) continue ;; esac
        [[ -r $image && -e /lib/modules/$release/build/Makefile ]] || continue
        printf '%s\n' "$release"
        return
    done
    return 1
}

kernel_packages() { # what to install so that find_kernel finds one
    local image release
    if [[ -n ${PRAWN_KERNEL:-} ]]; then
        printf '%s\n' "linux-image-$PRAWN_KERNEL" \
            "linux-headers-$PRAWN_KERNEL"
        return
    fi
    # A kernel that is already here only wants its headers.
    for image in $(printf '%s\n' /boot/vmlinuz-*-amd64 | sort -Vr); do
        release=${image#/boot/vmlinuz-}
        case $release in *-cloud-amd64 | *-rt-amd64) continue ;; esac
        [[ -r $image ]] || continue
        if known_to_apt "linux-headers-$release"; then
            printf '%s\n' "linux-headers-$release"
            return
        fi
    done
    printf '%s\n' linux-image-amd64 linux-headers-amd64
}

known_to_apt() {
    local policy
    policy=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null)
    [[ $policy == *"Candidate: "* && $policy != *"Candidate: (none)"* ]]
}

install_packages() {
    local package options
    options=(-y -q --no-install-recommends --no-remove
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
    for package in "$@"; do
        known_to_apt "$package" && continue
        say "apt does not know $package: updating its lists"
        update_lists
        break
    done
    export DEBIAN_FRONTEND=noninteractive
    if ! as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get "${options[@]}" install "$@"; then
        # Lists older than the mirror name files that are gone.
        say "that failed: updating apt's lists and trying once more"
        update_lists
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get "${options[@]}" install "$@" ||
            die 3 "apt-get could not install: $* (its message is above)"
    fi
}

lists_vfio_user() { # does the QEMU started by "$@" have vfio-user-pci?
    local devices
    devices=$(timeout 20 "$@" -device help 2>/dev/null) || return 1
    [[ $devices == *'"vfio-user-pci"'* ]]
}

private_qemu() { # qemu_starter writes the same for people
    QEMU_MODULE_DIR=$1/usr/lib/x86_64-linux-gnu/qemu \
        lists_vfio_user "$1/usr/lib64/ld-linux-x86-64.so.2" \
        --library-path "$1/usr/lib/x86_64-linux-gnu" \
        "$1/usr/bin/qemu-system-x86_64" \
        -L "$1/usr/share/qemu" -L "$1/usr/share/seabios"
}

find_qemu() { # prints "own PATH" or "private DIR"
    local own
    if own=$(command -v qemu-system-x86_64) && lists_vfio_user "$own"; then
        printf 'own %s\n' "$own"
    elif [[ -d $QEMU_DIR ]] && private_qemu "$QEMU_DIR"; then
        printf 'private %s\n' "$QEMU_DIR"
    else
        return 1
    fi
}

find_busybox() { # a static one: Debian's two busybox packages exclude another
    local private
    if [[ $(installed busybox-static) == busybox-static ]]; then
        printf '/bin/busybox\n'
        return
    fi
    # Debian 12's package has it in /bin, Debian 13's in /usr/bin.
    for private in "$ROOT"/build/busybox/{usr/,}bin/busybox; do
        [[ -x $private ]] || continue
        printf '%s\n' "$private"
        return
    done
    return 1
}

fetch_busybox() { # into build/busybox, without installing it
    local part=$ROOT/build/busybox.part.$$
    rm -rf "$ROOT"/build/busybox.part.*
    mkdir -p "$part"
    known_to_apt busybox-static || update_lists
    # apt's own download user may not write here, which it only warns of
    (cd "$part" && run apt-get -q download busybox-static 2>/dev/null &&
        run dpkg-deb -x busybox-static_*.deb .) ||
        die 3 "could not download the package busybox-static with apt-get"
    rm -f "$part"/*.deb
    rm -rf "$ROOT/build/busybox"
    mv "$part" "$ROOT/build/busybox"
}

debian_mirror() { # the mirror this machine's own apt uses, either format
    local uri
    # shellcheck disable=SC1091
    uri=$(. /etc/os-release
        apt-get indextargets --format '$(REPO_URI) $(RELEASE)' \
            'Created-By: Packages' 2>/dev/null |
            awk -v code="${VERSION_CODENAME:-none}" '
                $2 == code || $2 == "stable" || $2 == "oldstable" {
                    sub("/$", "", $1); print $1; exit }')
    [[ -n $uri ]] || die 3 "no Debian mirror in apt's sources: add the line" \
        "for your release to /etc/apt/sources.list"
    printf '%s\n' "$uri"
}

extract_qemu() {
    local mirror part=$QEMU_DIR.part.$$
    mirror=$(debian_mirror)
    say "extracting QEMU from trixie-backports into build/qemu"
    mkdir -p "$ROOT/build"
    as_root rm -rf "$QEMU_DIR".part.*
    # Its own libraries come along, so the machine's release does not matter;
    # nothing in there is configured or run but QEMU.
    as_root mmdebstrap --quiet --mode=root --variant=extract \
        --include=qemu-system-x86 \
        --aptopt='APT::Default-Release "trixie-backports"' \
        --aptopt='APT::Install-Recommends "false"' \
        trixie "$part" "deb $mirror trixie main" \
        "deb $mirror trixie-backports main" || {
        as_root rm -rf "$part"
        die 3 "mmdebstrap could not extract QEMU (its message is above)"
    }
    ((EUID == 0)) || as_root chown -R "$(id -u):$(id -g)" "$part"
    private_qemu "$part" ||
        die 3 "the QEMU extracted into $part lacks vfio-user-pci"
    as_root rm -rf "$QEMU_DIR"
    mv "$part" "$QEMU_DIR"
}

qemu_starter() { # qemu_starter KIND PATH: build/qemu-system-x86_64, by hand
    local file=$ROOT/build/qemu-system-x86_64
    {
        printf '#!/bin/sh\n# Starts the QEMU that ./prawn uses.\n'
        printf 'qemu=%s\n' "${2@Q}"
        if [[ $1 == own ]]; then
            # shellcheck disable=SC2016
            printf 'exec "$qemu" "$@"\n'
        else
            cat <<'END'
lib=$qemu/usr/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR="$lib/qemu"
exec "$qemu/usr/lib64/ld-linux-x86-64.so.2" --library-path "$lib" \
    "$qemu/usr/bin/qemu-system-x86_64" -L "$qemu/usr/share/qemu" \
    -L "$qemu/usr/share/seabios" "$@"
END
        fi
    } >"$file.part"
    chmod +x "$file.part"
    mv "$file.part" "$file"
}

stamp() { # what the recorded set-up depends on
    { cat "$ROOT/prawn" /etc/os-release
        printf '%s\n' "${PRAWN_KERNEL:-}"; } | sha256sum | cut -d' ' -f1
}

conf_value() { sed -n "s/^$1=//p" "$CONF" 2>/dev/null || true; }

setup_is_current() {
    local kernel qemu
    [[ -r $CONF && $(conf_value stamp) == "$(stamp)" ]] || return 1
    [[ -z $(missing_packages) ]] || return 1
    kernel=$(conf_value kernel)
    qemu=$(conf_value qemu)
    [[ $kernel == "$(find_kernel)" && -x $qemu &&
        -x $ROOT/build/qemu-system-x86_64 ]] &&
        [[ $(conf_value busybox) == "$(find_busybox)" ]]
}

setup() { # setup [dry]
    local dry=${1:-} packages kernel qemu busybox
    command -v apt-get >/dev/null && [[ -r /etc/os-release ]] ||
        die 3 "this is no Debian: Prawn's set-up needs apt (Debian 12 or 13)"
    [[ $(dpkg --print-architecture) == amd64 ]] ||
        die 3 "guests are x86-64 and use this machine's packages: need amd64"
    mapfile -t packages < <(missing_packages)
    find_kernel >/dev/null ||
        { mapfile -t -O ${#packages[@]} packages < <(kernel_packages); }
    qemu=$(find_qemu) || qemu=
    if ((${#packages[@]})); then
        say "will install ${#packages[@]} Debian packages (no Recommends," \
            "nothing removed): ${packages[*]}"
    fi
    find_busybox >/dev/null ||
        say "will extract the package busybox-static into build/busybox"
    [[ -n $qemu ]] ||
        say "will extract QEMU (about 170 MB) from trixie-backports into" \
            "build/qemu, because no QEMU here has vfio-user-pci"
    if [[ $dry == dry ]]; then
        if ((!${#packages[@]})) && [[ -n $qemu ]] && find_busybox >/dev/null
        then
            say "nothing is missing"
        fi
        return
    fi
    ((!${#packages[@]})) || install_packages "${packages[@]}"
    kernel=$(find_kernel) || die 3 "no kernel ${PRAWN_KERNEL:-*-amd64} with" \
        "its headers after installation: is /boot readable?"
    find_busybox >/dev/null || fetch_busybox
    busybox=$(find_busybox) ||
        die 3 "the package busybox-static extracted into build/busybox has" \
            "no bin/busybox"
    [[ -n $qemu ]] || {
        extract_qemu
        qemu=$(find_qemu) || die 3 "the QEMU in $QEMU_DIR does not run"
    }
    qemu_starter "${qemu%% *}" "${qemu#* }"
    { printf '%s\n' "stamp=$(stamp)" "kernel=$kernel" \
        "busybox=$busybox" \
        "qemu_kind=${qemu%% *}" "qemu=${qemu#* }" >"$CONF.part" &&
        mv "$CONF.part" "$CONF"; } || die 3 "$CONF cannot be written"
}

ensure_setup() {
    setup_is_current && return
    local begin=$SECONDS
    say "set-up ..."
    setup
    say "set-up done ($((SECONDS - begin)) s): kernel $(conf_value kernel)," \
        "QEMU $(conf_value qemu)"
}

# ----------------------------------------------------------------- build ----

# Run a build step with its output in a log: steps of a build matter only when
# they fail. On the way, one line now and then says how far it is.
quietly() { # quietly NAME LOG COMMAND...
    local name=$1 log=$2 begin=$SECONDS pid last=0 status=0
    shift 2
    show "$@"
    if ((verbose)); then
        "$@" >&2 || die 3 "$name failed (output above)"
        return
    fi
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - begin >= last + 10)); then
            last=$((SECONDS - begin))
            say "$name ... $last s $(tail -n 1 "$log" | cut -c -60)"
        fi
    done
    wait "$pid" || status=$?
    trap - INT TERM
    if ((status)); then
        # ninja repeats the failing command and its output last
        tail -n 40 "$log" >&2
        die 3 "$name failed: the whole output is in ${log#"$ROOT"/}"
    fi
    ((SECONDS - begin < 3)) || say "$name done ($((SECONDS - begin)) s)"
}

build() { # build TARGET...
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    # What ccache wants before it caches anything with a precompiled header.
    export CCACHE_SLOPPINESS=pch_defines,time_macros
    mkdir -p "$OUT" || die 3 "$OUT cannot be made (the reason is above)"
    # We stay where we are: the user's paths are relative to that.
    local kdir jobs=()
    kdir=/lib/modules/$(conf_value kernel)/build
    if [[ ! -e $OUT/build.ninja ||
        $ROOT/CMakePresets.json -nt $OUT/build.ninja ]] ||
        ! grep -qxF "PRAWN_KDIR:PATH=$kdir" "$OUT/CMakeCache.txt"; then
        quietly configure "$OUT/configure.log" env -C "$ROOT" \
            cmake --preset "$PRESET" -DPRAWN_KDIR:PATH="$kdir"
    fi
    [[ -z ${PRAWN_JOBS:-} ]] || jobs=(-j "$PRAWN_JOBS")
    quietly build "$OUT/build.log" ninja -C "$OUT" "${jobs[@]}" "$@"
}

prepare() { # set-up and build
    take_lock
    ensure_setup
    build "$@"
    exec 9>&-
}

# -------------------------------------------------------------- commands ----

cmd_setup() {
    local dry=
    for arg in "$@"; do
        case $arg in
        --dry-run) dry=dry ;;
        --verbose) verbose=1 ;;
        *) die 2 "setup: unknown option $arg (./prawn setup --help)" ;;
        esac
    done
    if [[ $dry == dry ]]; then
        setup dry
        return
    fi
    take_lock
    if setup_is_current; then
        say "set-up is complete: kernel $(conf_value kernel)," \
            "QEMU $(conf_value qemu)"
    else
        ensure_setup
    fi
    give_to_owner
}

cmd_test() {
    local ctest=(--output-on-failure -j "$(nproc)")
    # Unit tests run within sanitize/asan; as they are only if asked for.
    local without=(-LE '^(slow|sanitized)$')
    local targets=(all prawn_ko prawn-guest-tests) judges=(clang-format)
    if [[ $PRESET != release ]]; then
        without=(-LE '^slow$') targets+=(prawn-unit-tests)
    fi
    while (($#)); do
        case $1 in
        --all)
            without=() targets+=(prawn-unit-tests) judges+=(clang-tidy)
            ;;
        --label | -L)
            (($# > 1)) || die 2 "test: $1 needs a label"
            ctest+=(-L "$2") targets+=(prawn-unit-tests)
            if [[ $2 == *slow* ]]; then
                without=()
            elif ((${#without[@]})); then
                without=(-LE '^slow$')
            fi
            shift
            ;;
        -R)
            (($# > 1)) || die 2 "test: -R needs a regular expression"
            ctest+=(-R "$2") targets+=(prawn-unit-tests)
            ((!${#without[@]})) || without=(-LE '^slow$')
            shift
            ;;
        --verbose) verbose=1 ;;
        *) die 2 "test: unknown option $1 (./prawn test --help)" ;;
        esac
        shift
    done
    # Other versions of these than Debian 12's do not judge the tree.
    ! grep -qx 'VERSION_ID="12"' /etc/os-release || wanted+=("${judges[@]}")
    prepare "${targets[@]}"
    show ctest "${ctest[@]}"
    # Tests with guests want all cores and say so by themselves.
    exec ctest --test-dir "$OUT" --no-tests=error "${ctest[@]}" "${without[@]}" \
        </dev/null
}

cmd_launch() { # demo, boot, sim, bench: prawn-launch knows their options
    local targets=(prawn-run prawn_ko)
    [[ $1 != bench ]] || targets+=(prawn-bench)
    prepare "${targets[@]}"
    show "$OUT/qemu-device/launcher/prawn-launch" "$@"
    exec "$OUT/qemu-device/launcher/prawn-launch" --root "$ROOT" \
        --build "$OUT" "$@"
}

cmd_trace() { # prawn-trace knows its subcommands
    prepare prawn-trace
    show "$TRACE" "$@"
    exec "$TRACE" "$@"
}

main() {
    # A closed standard input would be some file that is opened next.
    { : <&0; } 2>/dev/null || exec </dev/null
    local command=${1:-help}
    (($#)) && shift
    # A command's own help comes without set-up or build. What follows "--"
    # belongs to QEMU.
    local arg
    for arg in "$@"; do
        case $arg in
        --) break ;;
        --help | -h)
            # A subcommand explains itself once it has been built.
            [[ $command != trace || $1 == -* || ! -x $TRACE ]] ||
                exec "$TRACE" "$@"
            help_for "$command"
            exit 0
            ;;
        --verbose) verbose=1 ;;
        esac
    done
    case $command in
    help | --help | -h)
        if (($#)); then help_for "$1"; else usage; fi
        ;;
    --version) printf 'prawn %s\n' "$PRAWN_VERSION" ;;
    setup) cmd_setup "$@" ;;
    test) cmd_test "$@" ;;
    demo | boot | sim | bench) cmd_launch "$command" "$@" ;;
    trace) cmd_trace "$@" ;;
    *) die 2 "no such command: $command (./prawn help lists them)" ;;
    esac
}

main "$@"
