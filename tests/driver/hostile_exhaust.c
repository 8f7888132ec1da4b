// SPDX-License-Identifier: Apache-2.0
/*
 * Taking all there is: contexts, files, pinned memory, table entries. The end
 * of each is an errno for who asks for more; what others have goes on working;
 * everything comes back. Of the tables one process gets a part only.
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

/* A process takes all it may, waits, and gives it back by its end. */
struct taker {
	pid_t pid;
	int said, hold;
	struct {
		unsigned count;
		int error;
	} got;
};

static unsigned take_exports(struct raw *of, unsigned char *page, int *error)
{
	unsigned n = 0;

	for (*error = 0; n < MANY; n++) {
		char name[PRAWN_NAME_SIZE];
		uint32_t id;

		snprintf(name, sizeof(name), "exhaust.%d.%u", getpid(), n);
		*error = raw_export(of, page, 4096, name, 0, &id);
		if (*error)
			break;
	}
	return n;
}

static unsigned take_imports(struct raw *of, unsigned char *page, int *error)
{
	unsigned n = 0;
	uint32_t id;

	(void)page;
	while (n < MANY && !(*error = raw_import(of, PEER_NODE, NAME_SANDBOX,
						 5000, &id, NULL)))
		n++;
	return n;
}

typedef unsigned take(struct raw *of, unsigned char *page, int *error);

static struct taker taker(take *all)
{
	struct taker t = { 0 };
	int said[2], hold[2];
	char c;

	if (pipe(said) || pipe(hold))
		tap_bail("pipe");
	t.pid = fork();
	if (!t.pid) {
		unsigned char *page = pages(4096);
		struct raw mine;

		close(hold[1]);
		raw_start(&mine, 4);
		t.got.count = all(&mine, page, &t.got.error);
		if (t.got.count && raw_pinned(&mine) > 4096)
			t.got.count = 0; /* a page counts once */
		(void)!write(said[1], &t.got, sizeof(t.got));
		(void)!read(hold[0], &c, 1);
		_exit(0);
	}
	close(said[1]);
	close(hold[0]);
	t.said = said[0];
	t.hold = hold[1];
	EXPECT(read(t.said, &t.got, sizeof(t.got)) == sizeof(t.got),
	       "a process that takes died");
	return t;
}

static void give_back(struct taker *t)
{
	close(t->hold);
	close(t->said);
	waitpid(t->pid, NULL, 0);
}

/* One process cannot take all; so many can. */
static void exhaust(take *all, unsigned entries)
{
	enum { PROCESSES = PRAWN_CONTEXTS - 4, QUOTA = 256 };
	static struct taker t[PROCESSES];
	unsigned n = 0, sum = 0, again;
	int error = 0;

	victim_mark();
	while (n < PROCESSES && error != -ENOSPC && !tap.case_failed) {
		t[n] = taker(all);
		error = t[n].got.error;
		EXPECT(error == -ENOSPC ||
			       (error == -EDQUOT && t[n].got.count == QUOTA),
		       "process %u has %u: %s", n, t[n].got.count,
		       strerror(-error));
		sum += t[n++].got.count;
	}
	EXPECT_EQ(error, -ENOSPC);
	EXPECT(sum > entries / 2 && sum < entries, "%u of %u", sum, entries);
	tap_note("  %u were free, for %u processes", sum, n);
	works(&r);
	while (n)
		give_back(&t[--n]);
	/* All of it is free again. */
	t[0] = taker(all);
	again = t[0].got.count;
	EXPECT_EQ(again, QUOTA);
	give_back(&t[0]);
	works(&r);
	victim_expect_progress();
}

static void exports(void)
{
	exhaust(take_exports, r.query.ipt_entries);
}

static void imports(void)
{
	exhaust(take_imports, r.query.opt_entries);
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
