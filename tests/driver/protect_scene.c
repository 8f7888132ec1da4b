// SPDX-License-Identifier: Apache-2.0
#include "protect_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "tap.h"

enum {
	PRAWN_GID = 900, /* group prawn of the guests' image */
	PROGRESS_MS = 8000,
};

static uint64_t word(uint64_t seed, uint64_t index)
{
	uint64_t z = (seed << 32 ^ index) * 0x9e3779b97f4a7c15ull;

	return z ^ z >> 29;
}

void pattern_fill(void *to, size_t size, uint64_t seed)
{
	unsigned char *p = to;
	size_t i = 0;
	uint64_t w;

	for (; i + 8 <= size; i += 8) {
		w = word(seed, i / 8);
		memcpy(p + i, &w, 8);
	}
	w = word(seed, i / 8);
	memcpy(p + i, &w, size - i);
}

long pattern_check(const void *at, size_t size, uint64_t seed)
{
	const unsigned char *p = at;

	for (size_t i = 0; i < size; i += 8) {
		size_t n = size - i < 8 ? size - i : 8;
		uint64_t want = word(seed, i / 8);
		uint64_t got = want;

		memcpy(&got, p + i, n);
		if (got != want)
			return (long)i + __builtin_ctzll(got ^ want) / 8;
	}
	return -1;
}

long first_other(const void *at, size_t size, unsigned char value)
{
	const unsigned char *p = at;

	if (!size || (p[0] == value && memcmp(p, p + 1, size - 1) == 0))
		return -1;
	for (size_t i = 0;; i++)
		if (p[i] != value)
			return (long)i;
}

bool guarded_make(struct guarded *g, size_t size, uint64_t seed, void *where)
{
	unsigned char *p;
	int fixed = where ? MAP_FIXED_NOREPLACE : 0;
	unsigned char *want = where ? (unsigned char *)where - PAGE : NULL;

	p = mmap(want, size + 2 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | fixed, -1, 0);
	if (p == MAP_FAILED)
		return false;
	g->buffer = p + PAGE;
	g->size = size;
	g->seed = seed;
	pattern_fill(p, PAGE, seed);
	pattern_fill(p + PAGE + size, PAGE, ~seed);
	return true;
}

bool guarded_intact(const struct guarded *g, const char *name)
{
	long before = pattern_check(g->buffer - PAGE, PAGE, g->seed);
	long after = pattern_check(g->buffer + g->size, PAGE, ~g->seed);

	return EXPECT(before < 0, "%s: canary before it changed at byte %ld",
		      name, before) &
	       EXPECT(after < 0, "%s: canary after it changed at byte %ld",
		      name, after);
}

void guarded_free(struct guarded *g)
{
	munmap(g->buffer - PAGE, g->size + 2 * PAGE);
	g->buffer = NULL;
}

const volatile struct victim_state *victim_look(void)
{
	static const volatile struct victim_state *state;
	void *p;
	int fd;

	if (state)
		return state;
	fd = open(VICTIM_FILE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	p = mmap(NULL, sizeof(*state), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		state = p;
	return state;
}

static uint64_t marked;
static uint64_t marked_ms;

void victim_mark(void)
{
	const volatile struct victim_state *v = victim_look();

	marked = v ? v->bytes : 0;
	marked_ms = now_ms();
}

void victim_expect_progress(void)
{
	const volatile struct victim_state *v = victim_look();
	uint64_t during, ms, end;

	if (!v)
		return;
	during = v->bytes - marked;
	ms = now_ms() - marked_ms;
	/* What was under way when we stopped must come, too. */
	marked = v->bytes;
	for (end = now_ms() + PROGRESS_MS;
	     v->bytes == marked && now_ms() < end;)
		sleep_ms(5);
	EXPECT(v->bytes != marked, "the victim is stuck");
	EXPECT(during || ms < 500, "the victim got nothing through in %llu ms",
	       (unsigned long long)ms);
	EXPECT(v->running && !v->failed, "the victim has failed");
	tap_note("  victim: %llu KiB in %llu ms, longest gap so far %llu ms",
		 (unsigned long long)during >> 10, (unsigned long long)ms,
		 (unsigned long long)v->worst_gap_ms);
}

void become(unsigned uid, unsigned gid)
{
	const gid_t groups[] = { PRAWN_GID };

	if (setgroups(1, groups) || setgid(gid) || setuid(uid))
		tap_bail("cannot become user %u: %s", uid, strerror(errno));
}

void limit_memlock(size_t bytes)
{
	const struct rlimit limit = { bytes, bytes };

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		tap_bail("setrlimit: %s", strerror(errno));
}

void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("no memory: %s", strerror(errno));
	return p;
}
