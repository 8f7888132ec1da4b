// SPDX-License-Identifier: Apache-2.0
/*
 * vmmc_send of every class of length and every alignment of source and
 * destination, to the other node and to the own one; large messages; what is
 * refused.
 *
 * usage: lib_send [RANDOM [LARGE]]   random sends; bytes of the large ones
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hostile_raw.h"
#include "lib_scene.h"

enum { RANDOM = 150, LARGE = CHECK_SIZE, LOCAL_SIZE = 4 << 20 };

static unsigned long random_sends = RANDOM;
static size_t large = LARGE;
static struct checked to;
static unsigned char *source; /* CHECK_SIZE and two pages */
static uint32_t seed = 1;
static struct random random_state = { 17 };

static bool send_one(uint64_t offset, size_t from, size_t length)
{
	return checked_send(&to, offset, source + from, length, seed++);
}

/* Around everything that is a border: words, packets, pages. */
static void length_classes(void)
{
	static const size_t lengths[] = {
		0,    1,    2,	  3,	 4,	5,     7,     8,    9,
		15,   16,   17,	  31,	 32,	33,    63,    64,   65,
		127,  128,  129,  255,	 256,	257,   511,   512,  513,
		1023, 1024, 1025, 2047,	 2048,	2049,  4095,  4096, 4097,
		8191, 8192, 8193, 12287, 12288, 65535, 65536, 65537
	};

	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		if (!send_one(PAGE, PAGE, lengths[i]) ||  /* page to page */
		    !send_one(PAGE - 1, 1, lengths[i]) || /* across a border */
		    !send_one(to.size - lengths[i], 3,
			      lengths[i])) /* to the end */
			return;
	}
}

/* All pairs modulo 8, and both sides of a page border. */
static void alignments(void)
{
	for (unsigned a = 0; a < 8; a++)
		for (unsigned b = 0; b < 8; b++)
			if (!send_one(PAGE + a, PAGE + b, 37) ||
			    !send_one(2 * PAGE - 16 + a, 2 * PAGE - 24 + b,
				      41) ||
			    !send_one(PAGE + a, b, PAGE + 5))
				return;
}

static void at_random(void)
{
	for (unsigned long i = 0; i < random_sends; i++) {
		size_t limit = (size_t)1 << random_below(&random_state, 19);
		size_t length = random_below(&random_state, limit);

		if (!send_one(random_below(&random_state, to.size - length),
			      random_below(&random_state, 2 * PAGE), length))
			return;
	}
}

static void large_messages(void)
{
	size_t size = large < to.size ? large : to.size;

	if (send_one(0, 0, size) && send_one(0, PAGE - 3, size - 5) &&
	    send_one(7, 1, size - 7))
		tap_note("  3 messages of %zu KiB", size >> 10);
}

/* What may not be sent is refused and changes nothing. */
static void refusals(void)
{
	const int range = VMMC_CARD_ERROR(PRAWN_STATUS_OUT_OF_RANGE);
	vmmc_request_t request;
	void *none =
		mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT_ERROR(vmmc_send(to.to, to.size, source, 1, 0, 0), range);
	EXPECT_ERROR(vmmc_send(to.to, to.size - 1, source, 2, 0, 0), range);
	EXPECT_ERROR(vmmc_send(to.to, ~0ull, source, 2, 0, 0), range);
	EXPECT_ERROR(vmmc_send(to.to, 0, source, to.size + 1, 0, 0), range);
	EXPECT_ERROR(vmmc_send(to.to, 0, source, VMMC_MESSAGE_MAX + 1, 0, 0),
		     -EINVAL);
	EXPECT_ERROR(vmmc_send(to.to, 0, source, 8, 2, 0), -EINVAL);
	EXPECT_ERROR(vmmc_send(to.to, 0, none, 8, 0, 0), -EFAULT);
	EXPECT_ERROR(vmmc_send(to.to, 0, NULL, 8, 0, 0), -EFAULT);
	EXPECT_ERROR(vmmc_test(to.v, 0, NULL), -EINVAL);
	EXPECT_ERROR(vmmc_test(to.v, ~0ull, NULL), -EINVAL);
	/* Half of it lies in nothing: the rest was sent, and the error says so.
	 */
	if (EXPECT_OK(vmmc_isend(to.to, 0, (char *)none - 100, 200, 0, 0,
				 &request))) {
		struct vmmc_completion c;

		EXPECT_EQ(vmmc_complete(to.v, request, &c, 10000), 1);
		EXPECT(c.error == -EFAULT && c.bytes <= 100, "%s, %llu bytes",
		       vmmc_strerror(c.error), (unsigned long long)c.bytes);
		EXPECT_ERROR(vmmc_test(to.v, request, &c), -EINVAL);
	}
	munmap(none, PAGE);
}

static void all(const char *where)
{
	static const struct {
		const char *name;
		void (*body)(void);
	} cases[] = {
		{ "every class of length", length_classes },
		{ "every alignment", alignments },
		{ "at random", at_random },
		{ "large messages", large_messages },
	};
	char name[80];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(name, sizeof(name), "send to %s: %s", where,
			 cases[i].name);
		tap_run(name, cases[i].body);
	}
}

static vmmc_t *v;

static void connect_remote(void)
{
	checked_remote(&to, v);
}

static void connect_local(void)
{
	checked_local(&to, v, "lib.send", LOCAL_SIZE);
}

static void disconnect(void)
{
	checked_close(&to);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		random_sends = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		large = strtoul(argv[2], NULL, 0);
	limit_memlock(256 << 20);
	become(LIB_UID, LIB_UID);
	source = pages(CHECK_SIZE + 2 * PAGE);
	v = lib_open();
	tap_run("connect to the other node", connect_remote);
	if (to.to) {
		all("the other node");
		tap_run("disconnect", disconnect);
	}
	tap_run("connect to the own node", connect_local);
	if (to.to) {
		all("the own node");
		/* A page of the check buffer is enough: this changes it. */
		tap_run("what cannot be sent", refusals);
		tap_run("disconnect", disconnect);
	}
	vmmc_close(v);
	return tap_end();
}
