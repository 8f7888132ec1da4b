// SPDX-License-Identifier: Apache-2.0
/*
 * One endpoint in many threads: blocking and non-blocking sends, waiting for
 * notifications, exports that come and go, all at a time. Each thread sends to
 * a part of the buffer that is its own and looks there for what it sent.
 *
 * usage: lib_threads [ROUNDS]
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "hostile_raw.h"
#include "lib_scene.h"

enum { THREADS = 4, PART = 16 * PAGE, WINDOW = 8 };

static unsigned rounds = 100;
static vmmc_t *from, *to;
static unsigned node;
static struct guarded inbox;
static vmmc_export_t *e;
static vmmc_import_t *import;
static atomic_uint notified, sent;
static atomic_bool over;

/* Messages of one sender arrive in order: the last one shows that all did. */
static bool await_byte(const volatile unsigned char *at, unsigned char value)
{
	uint64_t end = now_ms() + 20000;

	while (*at != value)
		if (now_ms() > end)
			return FAIL("byte is %u, not %u", *at, value);
	return true;
}

static void *blocking(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	uint64_t at = number * PART;
	unsigned char *part = inbox.buffer + at;
	unsigned char *source = pages(PART);
	struct random random = { number };

	for (unsigned k = 1; k <= rounds && !tap.case_failed; k++) {
		size_t length = 1 + random_below(&random, PART - 2 * PAGE);
		uint32_t seed = number << 24 | k;
		long bad;

		pattern_fill(source, length, seed);
		source[PART - 1] = (unsigned char)k;
		if (!EXPECT_OK(vmmc_send(import, at, source, length,
					 VMMC_SEND_NOTIFY, seed)) ||
		    !EXPECT_OK(vmmc_send(import, at + PART - 1,
					 source + PART - 1, 1, 0, 0)))
			break;
		sent++;
		if (!await_byte(part + PART - 1, (unsigned char)k))
			break;
		bad = pattern_check(part, length, seed);
		if (!EXPECT(bad < 0,
			    "thread %u, message %u wrong at %ld of %zu", number,
			    k, bad, length))
			break;
	}
	munmap(source, PART);
	return NULL;
}

/* A window of requests, tested by the thread that made them. */
static void *non_blocking(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;
	uint64_t at = number * PART;
	unsigned char *source = pages(PART);
	vmmc_request_t request[WINDOW] = { 0 };
	unsigned posted = 0, done = 0;

	for (unsigned i = 0; i < PART; i++)
		source[i] = (unsigned char)i;
	while (done < rounds * WINDOW && !tap.case_failed) {
		struct vmmc_completion c;
		unsigned slot = done % WINDOW;

		while (posted < rounds * WINDOW && posted - done < WINDOW) {
			unsigned k = posted % WINDOW;
			int error = vmmc_isend(import, at + k * 4096,
					       source + k * 4096, 4096, 0, 0,
					       &request[k]);

			if (error == -EAGAIN)
				break;
			if (!EXPECT_OK(error))
				return NULL;
			posted++;
		}
		if (done == posted)
			continue;
		if (!EXPECT_EQ(vmmc_complete(from, request[slot], &c, 20000),
			       1) ||
		    !EXPECT_OK(c.error) || !EXPECT_EQ(c.bytes, 4096) ||
		    !EXPECT(c.finished_ps >= c.accepted_ps,
			    "finished before accepted"))
			break;
		done++;
	}
	source[PART - 1] = 0xee;
	EXPECT_OK(vmmc_send(import, at + PART - 1, source + PART - 1, 1, 0, 0));
	if (await_byte(inbox.buffer + at + PART - 1, 0xee))
		EXPECT(memcmp(inbox.buffer + at, source, WINDOW * 4096) == 0,
		       "thread %u: wrong data", number);
	munmap(source, PART);
	return NULL;
}

static void *waiting(void *unused)
{
	(void)unused;
	while (!over || notified < sent) {
		struct vmmc_notification n;
		int got = vmmc_wait(to, &n, 2000);

		if (!EXPECT(got >= 0, "%s", vmmc_strerror(got)))
			break;
		if (over && !got)
			break;
		if (got)
			notified += n.count;
	}
	return NULL;
}

/* Names of its own come and go, on both endpoints. */
static void *coming_and_going(void *unused)
{
	unsigned char *p = pages(PAGE);

	(void)unused;
	for (unsigned k = 0; k < rounds / 2 && !tap.case_failed; k++) {
		vmmc_export_t *x;
		vmmc_import_t *m;

		if (!EXPECT_OK(vmmc_export(from, p, PAGE, "lib.threads.2", 0,
					   NULL, &x)) ||
		    !EXPECT_OK(vmmc_import(to, node, "lib.threads.2", 5000,
					   NULL, &m)))
			break;
		EXPECT_OK(vmmc_send(m, 0, "abcdefgh", 8, 0, 0));
		EXPECT_OK(vmmc_unimport(m));
		EXPECT_OK(vmmc_unexport(x));
	}
	munmap(p, PAGE);
	return NULL;
}

static void run(void *(*senders)(void *), bool more)
{
	pthread_t thread[THREADS + 2];
	unsigned n = 0;

	over = false;
	notified = 0;
	sent = 0;
	memset(inbox.buffer, 0, inbox.size);
	for (; n < THREADS; n++)
		pthread_create(&thread[n], NULL, senders, (void *)(uintptr_t)n);
	if (more) {
		pthread_create(&thread[n++], NULL, coming_and_going, NULL);
		pthread_create(&thread[n], NULL, waiting, NULL);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	over = true;
	if (more) {
		pthread_join(thread[n], NULL);
		EXPECT_EQ(notified, sent);
	}
	guarded_intact(&inbox, "inbox");
}

static void all_blocking(void)
{
	run(blocking, true);
}

static void all_non_blocking(void)
{
	run(non_blocking, false);
}

int main(int argc, char **argv)
{
	struct vmmc_info info;
	int error;

	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 0);
	become(LIB_UID, LIB_UID);
	from = lib_open();
	to = lib_open();
	vmmc_query(from, &info);
	node = info.node;
	if (!guarded_make(&inbox, THREADS * PART, 91, NULL))
		tap_bail("no memory");
	error = vmmc_export(to, inbox.buffer, inbox.size, "lib.threads",
			    VMMC_EXPORT_NOTIFY, NULL, &e);
	if (!error)
		error = vmmc_import(from, node, "lib.threads", 5000, NULL,
				    &import);
	if (error)
		tap_bail("export or import: %s", vmmc_strerror(error));
	tap_run("blocking sends in threads of one endpoint", all_blocking);
	tap_run("non-blocking sends in threads of one endpoint",
		all_non_blocking);
	vmmc_close(from);
	vmmc_close(to);
	return tap_end();
}
