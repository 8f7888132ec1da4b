// SPDX-License-Identifier: Apache-2.0
/*
 * Misuse of the own doorbell page: ringing without end, accesses of every size
 * at every place, indices far ahead or behind. At the worst this stops the
 * context that does it.
 *
 * usage: hostile_doorbell [RINGS]
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3004, RINGS = 1000000, ARMS = 20000 };

static struct raw r;
static unsigned long rings = RINGS;

static uint64_t counter(const char *name)
{
	uint64_t value = 0;

	if (!raw_counter(r.fd, name, &value))
		FAIL("no counter %s", name);
	return value;
}

static void still_serves(void)
{
	const struct prawn_command nop = { .opcode = PRAWN_OPCODE_NOP,
					   .cookie = 0x1234 };

	EXPECT_EQ(raw_state(&r), PRAWN_STATE_ENABLED_MASK);
	EXPECT_EQ(raw_status(&r, &nop), PRAWN_STATUS_OK);
}

static void ring_on_and_on(void)
{
	victim_mark();
	for (unsigned long i = 0; i < rings; i++)
		raw_ring(&r);
	still_serves();
	victim_expect_progress();
}

/* Each arming that finds news raises an interrupt: our own trouble. */
static void arm_on_and_on(void)
{
	victim_mark();
	for (unsigned i = 0; i < ARMS; i++) {
		r.doorbell[PRAWN_DOORBELL_ARM_NOTIFY / 8] = ~0ull - i;
		r.doorbell[PRAWN_DOORBELL_ARM_COMPLETION / 8] = ~0ull - i;
	}
	still_serves();
	victim_expect_progress();
}

static void notify_consumed(void)
{
	struct random random = { 3 };

	for (unsigned i = 0; i < 10000; i++)
		r.doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8] =
			random_next(&random);
	r.doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8] = 0;
	still_serves();
}

static void write_size(volatile unsigned char *p, unsigned size, uint64_t value)
{
	switch (size) {
	case 1:
		*p = (unsigned char)value;
		break;
	case 2:
		*(volatile uint16_t *)p = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)p = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)p = value;
	}
}

static uint64_t read_size(const volatile unsigned char *p, unsigned size)
{
	switch (size) {
	case 1:
		return *p;
	case 2:
		return *(const volatile uint16_t *)p;
	case 4:
		return *(const volatile uint32_t *)p;
	default:
		return *(const volatile uint64_t *)p;
	}
}

/* True where an aligned access of that size is what a register is made for. */
static bool proper(unsigned offset, unsigned size, bool write)
{
	if (write)
		return size == 8 && offset % 8 == 0 &&
		       offset <= PRAWN_DOORBELL_ARM_COMPLETION;
	return (size == 8 && offset == PRAWN_DOORBELL_TIME) ||
	       (size == 4 && offset == PRAWN_DOORBELL_STATE);
}

static void every_access(void)
{
	volatile unsigned char *page = (volatile unsigned char *)r.doorbell;
	uint64_t bad = counter("csr.bad_access");

	victim_mark();
	for (unsigned size = 1; size <= 8; size *= 2) {
		/* All of the registers, and samples of the empty rest. */
		for (unsigned at = 0; at + size <= RAW_PAGE;
		     at += at < 64 ? 1 : 37) {
			uint64_t got;

			if (!proper(at, size, true))
				write_size(page + at, size,
					   0xfedcba9876543210ull);
			if (proper(at, size, false))
				continue;
			got = read_size(page + at, size);
			/* An unaligned one is several accesses, some of which
			 * may be proper: only what is aligned must read 0. */
			EXPECT(at % size || !got,
			       "%u bytes at %#x read %#" PRIx64, size, at, got);
		}
	}
	EXPECT(counter("csr.bad_access") > bad,
	       "bad accesses were not counted");
	still_serves();
	victim_expect_progress();
}

static void read_only(void)
{
	uint64_t before = r.doorbell[PRAWN_DOORBELL_TIME / 8];
	uint64_t after;

	r.doorbell[PRAWN_DOORBELL_TIME / 8] = 0;
	after = r.doorbell[PRAWN_DOORBELL_TIME / 8];
	EXPECT(after >= before && before,
	       "the clock went from %" PRIu64 " to %" PRIu64, before, after);
	EXPECT_EQ(r.doorbell[PRAWN_DOORBELL_DOORBELL / 8], 0);
	still_serves();
}

/* A context that does this is stopped, and says why; nobody else notices. */
static void stops(const char *what, uint64_t doorbell, unsigned status)
{
	struct raw bad;
	struct prawn_event event = { 0 };
	struct prawn_completion done;
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT,
				   .timeout_ns = 20000000000ull };
	char byte;
	int error;

	raw_start(&bad, 4);
	bad.doorbell[PRAWN_DOORBELL_DOORBELL / 8] = doorbell;
	error = raw_ioctl(bad.fd, PRAWN_IOC_WAIT, &wait);
	EXPECT(!error || error == -EIO, "%s: wait: %s", what, strerror(-error));
	EXPECT(raw_state(&bad) == (PRAWN_STATE_ERROR_MASK |
				   PRAWN_FIELD_PUT(STATE_STATUS, status)),
	       "%s: STATE is %#x", what, raw_state(&bad));
	error = raw_ioctl(bad.fd, PRAWN_IOC_EVENT, &event);
	EXPECT(!error && event.kind == PRAWN_EVENT_CONTEXT_STOPPED &&
		       event.status == status,
	       "%s: event: %s, kind %u, status %u", what, strerror(-error),
	       event.kind, event.status);
	EXPECT_EQ(raw_pin(&bad, &byte, 1), -EIO);
	EXPECT_EQ(raw_take(&bad, &done, 100), -EIO);
	raw_close(&bad);
	still_serves();
}

static void wild_doorbells(void)
{
	victim_mark();
	stops("one more than a ring ahead", 17, PRAWN_STATUS_RING_OVERRUN);
	stops("far ahead", 0x7fffffff, PRAWN_STATUS_RING_OVERRUN);
	stops("all ones behind", 0xffffffff, PRAWN_STATUS_RING_OVERRUN);
	stops("consumed what never was", 5ull << 32 | 5,
	      PRAWN_STATUS_BAD_FIELD);
	victim_expect_progress();
}

/* An older index than the newest is no news. */
static void stale_doorbell(void)
{
	still_serves();
	r.doorbell[PRAWN_DOORBELL_DOORBELL / 8] =
		(uint64_t)(r.consumed - 1) << 32 | (r.producer - 1);
	still_serves();
	/* Never saying what was consumed fills the ring and stops nobody else.
	 */
	for (unsigned i = 0; i < r.size; i++)
		raw_put(&r,
			&(struct prawn_command){ .opcode = PRAWN_OPCODE_NOP });
	raw_ring(&r);
	for (unsigned i = 0; i < r.size; i++) {
		struct prawn_completion done;

		if (!EXPECT(raw_take(&r, &done, 10000) == 1, "no completion"))
			return;
	}
	still_serves();
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rings = strtoul(argv[1], NULL, 0);
	become(UID, UID);
	raw_start(&r, 6);
	tap_run("ringing 10^6 times", ring_on_and_on);
	tap_run("arming interrupts without end", arm_on_and_on);
	tap_run("random NOTIFY_CONSUMED", notify_consumed);
	tap_run("accesses of every size at every place", every_access);
	tap_run("registers that cannot be written, or read", read_only);
	tap_run("doorbells far ahead", wild_doorbells);
	tap_run("doorbells behind, a full ring", stale_doorbell);
	raw_close(&r);
	return tap_end();
}
