// SPDX-License-Identifier: Apache-2.0
/*
 * Taking all there is: contexts, files, pinned memory, table entries. The end
 * of each is an errno for who asks for more; what others have goes on working;
 * everything comes back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3006, LIMIT = 64 * 4096, MANY = 8192 };

static struct raw r;

static bool works(struct raw *which)
{
	const struct prawn_command nop = { .opcode = PRAWN_OPCODE_NOP,
					   .cookie = 77 };

	return EXPECT_EQ(raw_status(which, &nop), PRAWN_STATUS_OK);
}

static unsigned take_contexts(struct raw *all, unsigned limit, int *error)
{
	unsigned n = 0;

	for (*error = 0; n < limit; n++) {
		*error = raw_open(&all[n]);
		if (!*error)
			*error = raw_setup(&all[n], 4);
		if (*error) {
			raw_close(&all[n]);
			break;
		}
	}
	return n;
}

static void contexts(void)
{
	static struct raw all[PRAWN_CONTEXTS + 1];
	unsigned first = 0;

	victim_mark();
	for (unsigned round = 0; round < 3 && !tap.case_failed; round++) {
		int error;
		unsigned n = take_contexts(all, PRAWN_CONTEXTS + 1, &error);

		EXPECT_EQ(error, -ENOSPC);
		EXPECT(n > 0 && n < r.query.contexts, "%u contexts of %u", n,
		       r.query.contexts);
		if (!round)
			first = n;
		EXPECT(n == first,
		       "%u contexts, before %u: some were not freed", n, first);
		for (unsigned i = 0; i < n; i++) {
			works(&all[i]);
			for (unsigned k = 0; k < i; k++)
				if (all[i].setup.context ==
				    all[k].setup.context)
					FAIL("context %u twice",
					     all[i].setup.context);
		}
		works(&r);
		for (unsigned i = 0; i < n; i++)
			raw_close(&all[i]);
	}
	tap_note("  %u contexts were free", first);
	victim_expect_progress();
}

/* A file is no context until SETUP. */
static void files(void)
{
	static int fd[MANY];
	struct rlimit limit;
	struct raw fresh;
	unsigned n = 0;

	victim_mark();
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max < MANY ? limit.rlim_max : MANY;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (n < MANY && (fd[n] = open(RAW_DEVICE, O_RDWR | O_CLOEXEC)) >= 0)
		n++;
	EXPECT(n == MANY || errno == EMFILE, "open: %s", strerror(errno));
	if (n)
		close(fd[--n]);
	raw_start(&fresh, 4);
	works(&fresh);
	raw_close(&fresh);
	while (n)
		close(fd[--n]);
	works(&r);
	victim_expect_progress();
}

static void pins(void)
{
	unsigned char *p = pages(2 * LIMIT);
	struct prawn_pin pin = { .address = (uintptr_t)p, .length = 2 * LIMIT };
	struct raw second;
	uint32_t id;

	victim_mark();
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -ENOMEM);
	EXPECT_EQ(pin.pinned, LIMIT);
	EXPECT_EQ(raw_pinned(&r), LIMIT);
	EXPECT_EQ(raw_pin(&r, p, LIMIT), 0); /* again: charges nothing */
	EXPECT_EQ(raw_pin(&r, p + LIMIT, 1), -ENOMEM);
	EXPECT_EQ(raw_export(&r, p + LIMIT, 4096, "exhaust.pins", 0, &id),
		  -ENOMEM);

	/* The limit is the address space's, not the context's. */
	raw_start(&second, 4);
	EXPECT_EQ(raw_pin(&second, p + LIMIT, 1), -ENOMEM);
	EXPECT_EQ(raw_unpin(&r, p, 4096), 0);
	EXPECT_EQ(raw_pin(&second, p + LIMIT, 1), 0);
	raw_close(&second);
	EXPECT_EQ(raw_pin(&r, p, 1), 0);

	/* Unmapped pages are given back, in a moment. */
	munmap(p, 2 * LIMIT);
	p = pages(LIMIT);
	for (int i = 0; i < 200 && raw_pinned(&r); i++)
		sleep_ms(10);
	EXPECT_EQ(raw_pinned(&r), 0);
	EXPECT_EQ(raw_pin(&r, p, LIMIT), 0);
	EXPECT_EQ(raw_unpin(&r, p, LIMIT), 0);
	EXPECT_EQ(raw_pinned(&r), 0);
	munmap(p, LIMIT);
	works(&r);
	victim_expect_progress();
}

static unsigned take_exports(unsigned char *page, unsigned limit, uint32_t *id,
			     int *error)
{
	unsigned n = 0;

	for (*error = 0; n < limit; n++) {
		char name[PRAWN_NAME_SIZE];

		snprintf(name, sizeof(name), "exhaust.%u", n);
		*error = raw_export(&r, page, 4096, name, 0, &id[n]);
		if (*error)
			break;
	}
	return n;
}

static void exports(void)
{
	static uint32_t id[MANY];
	unsigned char *page = pages(4096);
	unsigned n, again;
	int error;

	victim_mark();
	n = take_exports(page, MANY, id, &error);
	EXPECT_EQ(error, -ENOSPC);
	EXPECT(n > 0 && n < r.query.ipt_entries, "%u exports of %u", n,
	       r.query.ipt_entries);
	EXPECT_EQ(raw_pinned(&r), 4096);
	for (unsigned i = 0; i < n; i++)
		if (!EXPECT_EQ(raw_unexport(&r, id[i]), 0))
			break;
	EXPECT_EQ(raw_pinned(&r), 0);
	/* The names are free again, too. */
	again = take_exports(page, 16, id, &error);
	EXPECT_EQ(again, 16);
	for (unsigned i = 0; i < again; i++)
		EXPECT_EQ(raw_unexport(&r, id[i]), 0);
	tap_note("  %u exports were free", n);
	works(&r);
	victim_expect_progress();
}

static void imports(void)
{
	static uint32_t id[MANY];
	struct raw taker;
	uint32_t one;
	unsigned n = 0;
	int error = 0;

	victim_mark();
	raw_start(&taker, 4);
	while (n < MANY && !(error = raw_import(&taker, PEER_NODE, NAME_SANDBOX,
						5000, &id[n], NULL)))
		n++;
	EXPECT_EQ(error, -ENOSPC);
	EXPECT(n > 0 && n < r.query.opt_entries, "%u imports of %u", n,
	       r.query.opt_entries);
	tap_note("  %u imports were free", n);
	EXPECT_EQ(raw_import(&r, PEER_NODE, NAME_SANDBOX, 5000, &one, NULL),
		  -ENOSPC);
	raw_close(&taker); /* gives all of them back */
	EXPECT_EQ(raw_import(&r, PEER_NODE, NAME_SANDBOX, 5000, &one, NULL), 0);
	EXPECT_EQ(raw_unimport(&r, one), 0);
	works(&r);
	victim_expect_progress();
}

int main(void)
{
	limit_memlock(LIMIT);
	become(UID, UID);
	raw_start(&r, 4);
	tap_run("all contexts", contexts);
	tap_run("all files", files);
	tap_run("all of RLIMIT_MEMLOCK", pins);
	tap_run("all entries of the incoming page table", exports);
	tap_run("all entries of the outgoing page table", imports);
	raw_close(&r);
	return tap_end();
}
