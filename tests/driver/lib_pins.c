// SPDX-License-Identifier: Apache-2.0
/*
 * The library's pinning on demand: with less RLIMIT_MEMLOCK than a message is
 * long, and while the source is unmapped and mapped anew under it.
 *
 * usage: lib_pins [ROUNDS]
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hostile_raw.h"
#include "lib_scene.h"

enum { LIMIT = 32 * PAGE, SIZE = 4 << 20, INBOX = 8 << 20 };

static unsigned rounds = 60;
static vmmc_t *v, *receiver;
static struct checked to;
static uint32_t seed = 1;

static void connect(void)
{
	checked_remote(&to, v);
}

/* 128 times as long as may be pinned: in pieces, and in order. */
static void beyond_the_limit(void)
{
	unsigned char *source = pages(SIZE + PAGE);

	for (unsigned k = 0; k < 3; k++)
		if (!checked_pieces(&to, 3 * k, source + 5 * k, SIZE, seed++))
			break;
	munmap(source, SIZE + PAGE);
}

/* Many sources in turn: the least recently used make room. */
static void many_sources(void)
{
	enum { SOURCES = 24, LENGTH = 5 * PAGE };
	unsigned char *source[SOURCES];

	for (unsigned k = 0; k < SOURCES; k++)
		source[k] = pages(LENGTH);
	for (unsigned k = 0; k < 4 * SOURCES; k++)
		if (!checked_send(&to, 0, source[k % SOURCES], LENGTH, seed++))
			break;
	for (unsigned k = 0; k < SOURCES; k++)
		munmap(source[k], LENGTH);
}

/* Somebody else in the process has pinned all that may be. */
static void no_room(void)
{
	unsigned char *hog = pages(LIMIT);
	unsigned char *source = pages(2 * PAGE);
	struct raw other;

	EXPECT_OK(vmmc_unpin(v, source, 2 * PAGE));
	raw_start(&other, 4);
	/* What the cases before have unmapped is given back in a moment. */
	for (int k = 0; k < 200 && raw_pin(&other, hog, LIMIT); k++)
		sleep_ms(10);
	EXPECT_EQ(raw_pinned(&other), LIMIT);
	EXPECT_ERROR(vmmc_pin(v, source, PAGE), -ENOMEM);
	EXPECT_ERROR(vmmc_send(to.to, 0, source, PAGE, 0, 0), -ENOMEM);
	raw_close(&other);
	checked_send(&to, 0, source, 2 * PAGE, seed++);
	munmap(source, 2 * PAGE);
	munmap(hog, LIMIT);
}

static unsigned char *map_at(void *where, size_t size)
{
	int fixed = where ? MAP_FIXED : 0;
	void *p = mmap(where, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The same address, other pages: what is sent is what is there now. */
static void mapped_anew(void)
{
	enum { LENGTH = 7 * PAGE };
	unsigned char *source = map_at(NULL, LENGTH);
	struct random random = { 3 };

	for (unsigned k = 0; k < rounds && source; k++) {
		size_t from = random_below(&random, PAGE);

		if (!checked_send(&to, k, source + from, LENGTH - PAGE, seed++))
			break;
		switch (k % 4) {
		case 0:
			munmap(source, LENGTH);
			EXPECT(map_at(source, LENGTH) == source, "mmap");
			break;
		case 1: /* in one step, and only the middle */
			EXPECT(map_at(source + 2 * PAGE, 2 * PAGE), "mmap");
			break;
		case 2:
			EXPECT_EQ(madvise(source, LENGTH, MADV_DONTNEED), 0);
			break;
		default: {
			unsigned char *moved =
				mremap(source, LENGTH, LENGTH, MREMAP_MAYMOVE);

			EXPECT(moved == source, "mremap");
			EXPECT_EQ(mprotect(source, PAGE, PROT_READ), 0);
			EXPECT_EQ(
				mprotect(source, PAGE, PROT_READ | PROT_WRITE),
				0);
		}
		}
	}
	munmap(source, LENGTH);
}

/* Every byte of the inbox is of the old pages, of the new ones, or, if a
 * message failed, what was there before. */
static bool plausible(const struct guarded *inbox, unsigned round,
		      unsigned value, bool replaced, bool failed)
{
	for (size_t at = 0; at < inbox->size - 1; at++) {
		unsigned got = inbox->buffer[at];

		if (got != value && !(replaced && got == value + 1) &&
		    !(failed && got == 0xff))
			return FAIL("round %u: byte %zu is %u, not %u", round,
				    at, got, value);
	}
	return true;
}

/* A short message behind the others shows that all have arrived. */
static bool all_arrived(vmmc_import_t *i, struct guarded *inbox,
			unsigned char *source)
{
	uint64_t end = now_ms() + 10000;
	volatile unsigned char *last = inbox->buffer + inbox->size - 1;

	source[0] = 0xfe;
	if (!EXPECT_OK(vmmc_send(i, inbox->size - 1, source, 1, 0, 0)))
		return false;
	while (*last != 0xfe)
		if (!EXPECT(now_ms() < end, "nothing arrives"))
			return false;
	return true;
}

enum { BURST = 8, TRAFFIC = 8 * PAGE };

/* While the card is at it. A message comes from the old pages or the new ones;
 * one that finds none fails with EFAULT; nothing else is ever sent. */
static void traffic_round(vmmc_import_t *i, struct guarded *inbox,
			  unsigned char *source, unsigned k, unsigned *failed)
{
	bool replaced = k % 2, any_failed = false;
	unsigned value = 1 + k % 200;
	vmmc_request_t request[BURST];

	memset(inbox->buffer, 0xff, TRAFFIC);
	memset(source, (int)value, TRAFFIC);
	for (unsigned n = 0; n < BURST; n++)
		if (!EXPECT_OK(vmmc_isend(i, 0, source, TRAFFIC - 1, 0, 0,
					  &request[n])))
			return;
	munmap(source, TRAFFIC);
	if (replaced) {
		EXPECT(map_at(source, TRAFFIC) == source, "mmap");
		memset(source, (int)value + 1, TRAFFIC);
	}
	for (unsigned n = 0; n < BURST; n++) {
		struct vmmc_completion c = { 0 };

		EXPECT_EQ(vmmc_complete(v, request[n], &c, 20000), 1);
		EXPECT(!c.error || (c.error == -EFAULT && !replaced), "%s",
		       vmmc_strerror(c.error));
		*failed += !!c.error;
		any_failed |= !!c.error;
	}
	if (!replaced)
		EXPECT(map_at(source, TRAFFIC) == source, "mmap");
	if (all_arrived(i, inbox, source))
		plausible(inbox, k, value, replaced, any_failed);
}

static void under_traffic(void)
{
	unsigned char *source = map_at(NULL, TRAFFIC);
	struct guarded inbox;
	struct vmmc_info info;
	unsigned failed = 0;
	vmmc_export_t *e;
	vmmc_import_t *i;

	vmmc_query(receiver, &info);
	if (!EXPECT(guarded_make(&inbox, TRAFFIC, 5, NULL), "no memory") ||
	    !EXPECT_OK(vmmc_export(receiver, inbox.buffer, TRAFFIC, "lib.pins",
				   0, NULL, &e)) ||
	    !EXPECT_OK(vmmc_import(v, info.node, "lib.pins", 5000, NULL, &i)))
		return;
	for (unsigned k = 0; k < rounds && !tap.case_failed; k++)
		traffic_round(i, &inbox, source, k, &failed);
	tap_note("  %u messages, %u lost their source", rounds * BURST, failed);
	guarded_intact(&inbox, "inbox");
	EXPECT_OK(vmmc_unimport(i));
	EXPECT_OK(vmmc_unexport(e));
	munmap(source, TRAFFIC);
}

static void disconnect(void)
{
	checked_close(&to);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 0);
	limit_memlock(LIMIT + PAGE); /* a page for the verdicts */
	become(LIB_UID, LIB_UID);
	v = lib_open();
	receiver = lib_open();
	tap_run("connect to the other node", connect);
	if (to.to) {
		tap_run("a message longer than RLIMIT_MEMLOCK",
			beyond_the_limit);
		tap_run("more sources than RLIMIT_MEMLOCK", many_sources);
		tap_run("no page left to pin", no_room);
		tap_run("source mapped anew between sends", mapped_anew);
		tap_run("disconnect", disconnect);
	}
	tap_run("source mapped anew while it is sent", under_traffic);
	vmmc_close(v);
	vmmc_close(receiver);
	return tap_end();
}
