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

/*
 * While the card is at it. A message must come from the old pages or the new
 * ones; one that finds nothing fails with EFAULT; nothing else is sent.
 */
static void under_traffic(void)
{
	enum { LENGTH = 16 * PAGE };
	unsigned char *source = map_at(NULL, LENGTH);
	struct random random = { 4 };
	unsigned failed = 0, good = 0;
	struct guarded inbox;
	vmmc_export_t *e;
	vmmc_import_t *i;
	struct vmmc_info info;

	vmmc_query(receiver, &info);
	if (!EXPECT(guarded_make(&inbox, LENGTH, 5, NULL), "no memory") ||
	    !EXPECT_OK(vmmc_export(receiver, inbox.buffer, LENGTH, "lib.pins",
				   0, NULL, &e)) ||
	    !EXPECT_OK(vmmc_import(v, info.node, "lib.pins", 5000, NULL, &i)))
		return;
	memset(source, 1, LENGTH);
	for (unsigned k = 0; k < rounds && !tap.case_failed; k++) {
		struct vmmc_completion c = { 0 };
		vmmc_request_t request;
		unsigned value = 1 + k % 200;
		uint64_t spin = random_below(&random, 3000);

		memset(inbox.buffer, 0xff, LENGTH);
		memset(source, (int)value, LENGTH);
		if (!EXPECT_OK(
			    vmmc_isend(i, 0, source, LENGTH, 0, 0, &request)))
			break;
		while (spin--)
			__asm__ volatile("" ::: "memory");
		munmap(source, LENGTH);
		if (k % 2) {
			EXPECT(map_at(source, LENGTH) == source, "mmap");
			memset(source, (int)value + 1, LENGTH);
		}
		EXPECT_EQ(vmmc_complete(v, request, &c, 20000), 1);
		EXPECT(!c.error || (c.error == -EFAULT && k % 2 == 0), "%s",
		       vmmc_strerror(c.error));
		failed += !!c.error;
		good += !c.error;
		if (k % 2 == 0)
			EXPECT(map_at(source, LENGTH) == source, "mmap");
		/* A short message behind it shows that all has arrived. */
		source[0] = 0xfe;
		EXPECT_OK(vmmc_send(i, LENGTH - 1, source, 1, 0, 0));
		for (uint64_t end = now_ms() + 10000;
		     *(volatile unsigned char *)&inbox.buffer[LENGTH - 1] !=
		     0xfe;)
			if (!EXPECT(now_ms() < end, "nothing arrives"))
				break;
		for (size_t at = 0; at < LENGTH - 1; at++) {
			unsigned got = inbox.buffer[at];
			bool right = got == value ||
				     (k % 2 && got == value + 1) ||
				     (c.error && got == 0xff);

			if (!EXPECT(right, "round %u: byte %zu is %u, not %u",
				    k, at, got, value))
				break;
		}
	}
	tap_note("  %u messages arrived, %u lost their source", good, failed);
	guarded_intact(&inbox, "inbox");
	EXPECT_OK(vmmc_unimport(i));
	EXPECT_OK(vmmc_unexport(e));
	munmap(source, LENGTH);
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
