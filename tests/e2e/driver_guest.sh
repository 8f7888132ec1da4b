#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the guests of the driver's test, from the shared folder.
#
# usage: driver_guest.sh PROGRAM...
status=0
cp /host/driver_* /host/*.ko /tmp/ || exit 1
cd /tmp || exit 1
for program; do
    echo "# $(hostname): run $program"
    timeout -s KILL 150 "./$program" || {
        echo "# FAILED $program"
        status=1
    }
done
# Each program is to leave nothing behind, and the kernel nothing to say.
for file in /sys/kernel/debug/prawn/prawn*/contexts; do
    if [ -s "$file" ]; then
        echo "# FAILED: left behind: $(cat "$file")"
        status=1
    fi
done
if grep -q '^reclaimable_pages [^0]' /sys/kernel/debug/prawn/prawn*/state; then
    echo "# FAILED: pages are still counted as pinned"
    status=1
fi
if grep -q '^status 0x[0-9a-f]*[13579bdf][0-9a-f]$' \
    /sys/kernel/debug/prawn/prawn*/state; then
    echo "# FAILED: the checker saw a DMA outside of the grants"
    status=1
fi
if dmesg | grep -E 'BUG|WARNING|Oops|hung|prawn.*(given up|command .* refused)'; then
    echo "# FAILED: the kernel complained"
    dmesg | tail -n 40
    status=1
fi
exit $status
