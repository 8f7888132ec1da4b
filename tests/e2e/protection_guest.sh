#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs in every guest of the protection test, from the shared folder: node 1
# verifies what node 0 sends, node 0 has the victim and its attackers.
#
# usage: protection_guest.sh ci|slow [PROGRAM...]   programs: default all
tier=$1
shift
status=0
cp /host/* /tmp/ || exit 1
cd /tmp || exit 1
PATH=/tmp:$PATH

note() { echo "# $(hostname): $*"; }

# A program that hangs must not keep the others from running.
run() {
    note "run $*"
    timeout -s KILL "$limit" "$@" && return
    note "FAILED $*"
    status=1
}

# What the driver or the kernel would only say when something is wrong.
look_at_kernel_log() {
    dmesg | grep -E 'BUG|WARNING|Oops|rcu.*stall|hung task|prawn.*(given up|refused|outside|unknown event|bad message)' || return
    note "FAILED: the kernel complained"
    status=1
}

# prawn_node is in the environment of every command in a guest.
# shellcheck disable=SC2154
if [ "$prawn_node" = 1 ]; then
    limit=3600
    run protect_peer
    run protect_end check
    look_at_kernel_log
    exit "$status"
fi
[ "$prawn_node" = 0 ] || exit 0

if [ "$tier" = slow ]; then
    limit=1800
    all='hostile_commands
        hostile_garbage 2000000 1
        hostile_garbage 1000000 2
        hostile_doorbell 10000000
        hostile_mappings
        hostile_withdrawn 1000
        hostile_exhaust
        hostile_ioctl 200000 1
        hostile_ioctl 100000 2
        hostile_kill 1000
        lib_send 20000
        lib_notify
        lib_threads 3000
        lib_access
        lib_withdraw 500
        lib_pins 3000'
else
    limit=400
    all='hostile_commands
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
        lib_pins'
fi

rm -f /dev/shm/protect.victim
./protect_victim &
victim=$!
for _ in $(seq 300); do
    [ -s /dev/shm/protect.victim ] && break
    sleep 0.1
done
sleep 1
echo "$all" | while read -r line; do
    name=${line%% *}
    [ $# = 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
    # shellcheck disable=SC2086
    run $line
    echo $status >/tmp/status
done
status=$(cat /tmp/status 2>/dev/null || echo 1)
kill -TERM $victim
wait $victim || status=1
limit=100
run protect_end check
run protect_end quit
look_at_kernel_log
exit "$status"
