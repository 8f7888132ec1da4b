// SPDX-License-Identifier: Apache-2.0
/*
 * What one process may have of the card's tables (module parameters
 * max_exports and max_imports), and how the numbers of imports are given out.
 * Needs root, who has no limit; its children do.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3011, LIMIT = 5, DEFAULT = 256 };

static struct raw r;

static void parameter(const char *name, unsigned value)
{
	char path[80], text[16];
	int fd, n = snprintf(text, sizeof(text), "%u", value);

	snprintf(path, sizeof(path), "/sys/module/prawn/parameters/%s", name);
	fd = open(path, O_WRONLY);
	EXPECT(fd >= 0 && write(fd, text, (size_t)n) == n, "%s: %s", path,
	       strerror(errno));
	close(fd);
}

/* As many as there are, at most max; the error that ended it. */
static unsigned exports_of(struct raw *of, unsigned max, uint32_t *id,
			   int *error)
{
	static unsigned number;
	unsigned char *p = pages(RAW_PAGE);
	unsigned n = 0;

	for (*error = 0; n < max; n++) {
		char name[32];

		snprintf(name, sizeof(name), "quota.%d.%u", getpid(), number++);
		*error = raw_export(of, p, RAW_PAGE, name, 0, &id[n]);
		if (*error)
			break;
	}
	return n;
}

static unsigned imports_of(struct raw *of, unsigned max, uint32_t *id,
			   int *error)
{
	unsigned n = 0;

	for (*error = 0; n < max; n++) {
		*error = raw_import(of, r.query.node, "quota.target", 5000,
				    &id[n], NULL);
		if (*error)
			break;
	}
	return n;
}

/* In a child: the line of the first thing that is wrong, or 0. */
#define MUST(condition)                                                    \
	do {                                                               \
		if (!(condition)) {                                        \
			tap_note("line %d: not %s", __LINE__, #condition); \
			return 1;                                          \
		}                                                          \
	} while (0)

static int limited(unsigned (*take)(struct raw *, unsigned, uint32_t *, int *),
		   int (*give)(struct raw *, uint32_t))
{
	uint32_t id[2 * LIMIT], more[2 * LIMIT];
	struct raw first, second;
	int error;

	raw_start(&first, 4);
	raw_start(&second, 4);
	MUST(take(&first, LIMIT - 1, id, &error) == LIMIT - 1);
	/* The limit is the process's, not the context's. */
	MUST(take(&second, 2 * LIMIT, more, &error) == 1);
	MUST(error == -EDQUOT);
	MUST(take(&first, 1, more, &error) == 0 && error == -EDQUOT);
	/* What is given back can be had again, also by closing. */
	MUST(give(&first, id[0]) == 0);
	MUST(take(&second, 2 * LIMIT, more, &error) == 1);
	MUST(error == -EDQUOT);
	raw_close(&first);
	MUST(take(&second, 2 * LIMIT, more, &error) == LIMIT - 2);
	MUST(error == -EDQUOT);
	raw_close(&second);
	return 0;
}

static int limited_exports(void)
{
	return limited(exports_of, raw_unexport);
}

static int limited_imports(void)
{
	return limited(imports_of, raw_unimport);
}

static struct raw waiting;

static void *wait_long(void *unused)
{
	uint32_t id;

	(void)unused;
	raw_import(&waiting, r.query.node, "quota.nobody", 3000, &id, NULL);
	return NULL;
}

/* Imports that wait for their export count: they ask all the time. */
static int limited_waits(void)
{
	pthread_t thread[LIMIT];
	uint32_t id[LIMIT];
	int error;

	raw_start(&waiting, 4);
	for (int i = 0; i < LIMIT; i++)
		pthread_create(&thread[i], NULL, wait_long, NULL);
	sleep_ms(1000);
	MUST(imports_of(&waiting, 1, id, &error) == 0 && error == -EDQUOT);
	for (int i = 0; i < LIMIT; i++)
		pthread_join(thread[i], NULL);
	MUST(imports_of(&waiting, 1, id, &error) == 1);
	raw_close(&waiting);
	return 0;
}

static void in_child(int (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		become(UID, UID);
		_exit(body());
	}
	waitpid(pid, &status, 0);
	EXPECT(status == 0, "the process ended with %#x", status);
}

static void quotas(void)
{
	uint32_t id[LIMIT + 3];
	int error;

	parameter("max_exports", LIMIT);
	parameter("max_imports", LIMIT);
	in_child(limited_exports);
	in_child(limited_imports);
	in_child(limited_waits);
	/* CAP_SYS_RESOURCE */
	EXPECT_EQ(exports_of(&r, LIMIT + 3, id, &error), LIMIT + 3);
	for (int i = 0; i < LIMIT + 3; i++)
		EXPECT_EQ(raw_unexport(&r, id[i]), 0);
	EXPECT_EQ(imports_of(&r, LIMIT + 3, id, &error), LIMIT + 3);
	for (int i = 0; i < LIMIT + 3; i++)
		EXPECT_EQ(raw_unimport(&r, id[i]), 0);
	parameter("max_exports", DEFAULT);
	parameter("max_imports", DEFAULT);
}

static int unlimited(void)
{
	static uint32_t id[2 * DEFAULT];
	int error;
	struct raw mine;

	raw_start(&mine, 4);
	MUST(exports_of(&mine, DEFAULT + 1, id, &error) == DEFAULT + 1);
	raw_close(&mine);
	return 0;
}

static void no_quota(void)
{
	parameter("max_exports", 0);
	in_child(unlimited);
	parameter("max_exports", DEFAULT);
}

/* A command that comes too late must not find another import in the place. */
static void numbers(void)
{
	static bool seen[PRAWN_OPT_ENTRIES];
	uint32_t id;
	int error;

	for (unsigned i = 0; i < 100; i++) {
		if (!EXPECT_EQ(imports_of(&r, 1, &id, &error), 1))
			return;
		EXPECT(id < r.query.opt_entries && !seen[id],
		       "number %u comes again after %u imports", id, i);
		seen[id % PRAWN_OPT_ENTRIES] = true;
		EXPECT_EQ(raw_unimport(&r, id), 0);
	}
}

/* ---- an import that another thread lets go before the caller knows of it --
 */

enum { ODD = 12345, SECONDS = 5 };

static atomic_bool over;
static atomic_uint newest;

static void *let_go(void *unused)
{
	(void)unused;
	while (!over) {
		unsigned from = newest;

		for (unsigned i = 0; i < 8; i++)
			raw_unimport(&r, (from + i) % r.query.opt_entries);
	}
	return NULL;
}

static void *import_on(void *count)
{
	while (!over) {
		uint64_t length = 0;
		uint32_t id = ~0u;
		int error = raw_import(&r, r.query.node, "quota.odd", 5000, &id,
				       &length);

		if (!EXPECT_EQ(error, 0) || !EXPECT_EQ(length, ODD) ||
		    !EXPECT(id < r.query.opt_entries, "number %u", id))
			break;
		newest = id;
		raw_unimport(&r, id);
		(*(atomic_uint *)count)++;
	}
	return NULL;
}

static void raced(void)
{
	enum { IMPORTERS = 2, OTHERS = 2 };
	pthread_t thread[IMPORTERS + OTHERS];
	unsigned char *p = pages(4 * RAW_PAGE);
	atomic_uint count = 0;
	uint32_t id;

	EXPECT_EQ(raw_export(&r, p, ODD, "quota.odd", 0, &id), 0);
	for (int i = 0; i < IMPORTERS + OTHERS; i++)
		pthread_create(&thread[i], NULL,
			       i < IMPORTERS ? import_on : let_go, &count);
	for (int i = 0; i < SECONDS * 10 && !tap.case_failed; i++)
		sleep_ms(100);
	over = true;
	for (int i = 0; i < IMPORTERS + OTHERS; i++)
		pthread_join(thread[i], NULL);
	EXPECT(count > 10, "only %u imports", (unsigned)count);
	tap_note("  %u imports", (unsigned)count);
	EXPECT_EQ(raw_unexport(&r, id), 0);
	munmap(p, 4 * RAW_PAGE);
}

int main(void)
{
	unsigned char *p = pages(RAW_PAGE);
	uint32_t id;

	if (geteuid())
		tap_bail("needs root");
	raw_start(&r, 4);
	if (raw_export(&r, p, RAW_PAGE, "quota.target", 0, &id))
		tap_bail("no export");
	tap_run("exports and imports of one process", quotas);
	tap_run("no limit", no_quota);
	tap_run("numbers of imports are used again late", numbers);
	tap_run("an import that is let go at once", raced);
	raw_close(&r);
	return tap_end();
}
