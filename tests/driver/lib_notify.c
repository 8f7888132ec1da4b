// SPDX-License-Identifier: Apache-2.0
/*
 * Notifications: by poll, wait, and eventfd; when both sides want them and
 * when not; more of them than the ring holds; signals and time-outs.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "lib_scene.h"

enum { SMALL_RING = 4 }; /* log2 */

static vmmc_t *from, *to;
static unsigned node;
static unsigned char *buffer, *source;
static vmmc_export_t *e;
static vmmc_import_t *i;
static int cookie;

static bool connect(const char *name, unsigned flags)
{
	return EXPECT_OK(vmmc_export(to, buffer, PAGE, name, flags, &cookie,
				     &e)) &&
	       EXPECT_OK(vmmc_import(from, node, name, 5000, NULL, &i));
}

static void disconnect(void)
{
	EXPECT_OK(vmmc_unimport(i));
	EXPECT_OK(vmmc_unexport(e));
}

static bool tell(uint32_t number, unsigned flags)
{
	memcpy(source, &number, 4);
	return EXPECT_OK(
		vmmc_send(i, 8 * (number % 16), source, 4, flags, number));
}

static bool is_message(const struct vmmc_notification *n, uint32_t number)
{
	struct vmmc_info info;
	uint32_t data;

	vmmc_query(from, &info);
	memcpy(&data, buffer + 8 * (number % 16), 4);
	return EXPECT_EQ(n->type, VMMC_MESSAGE) &
	       EXPECT_EQ(n->immediate, number) &
	       EXPECT_EQ(n->offset, 8 * (number % 16)) &
	       EXPECT_EQ(n->length, 4) & EXPECT_EQ(n->count, 1) &
	       EXPECT_EQ(n->source_node, node) &
	       EXPECT_EQ(n->source_context, info.context) &
	       EXPECT(n->object == &cookie, "object") &
	       EXPECT_EQ(data, number) & EXPECT(n->delivered_ps > 0, "no time");
}

static void by_poll(void)
{
	struct vmmc_notification n;

	if (!connect("lib.poll", VMMC_EXPORT_NOTIFY))
		return;
	EXPECT_EQ(vmmc_poll(to, &n), 0);
	for (uint32_t k = 0; k < 100; k++) {
		uint64_t end = now_ms() + 10000;
		int got = 0;

		if (!tell(k, VMMC_SEND_NOTIFY))
			return;
		while (!got && now_ms() < end)
			got = vmmc_poll(to, &n);
		if (!EXPECT_EQ(got, 1) || !is_message(&n, k))
			return;
	}
	EXPECT_EQ(vmmc_poll(to, &n), 0);
	disconnect();
}

static void *tell_later(void *number)
{
	sleep_ms(50);
	tell((uint32_t)(uintptr_t)number, VMMC_SEND_NOTIFY);
	return NULL;
}

/* Asleep in the kernel when it comes. */
static void by_wait(void)
{
	struct vmmc_notification n;

	if (!connect("lib.wait", VMMC_EXPORT_NOTIFY))
		return;
	for (uint32_t k = 0; k < 20; k++) {
		pthread_t thread;

		pthread_create(&thread, NULL, tell_later, (void *)(uintptr_t)k);
		EXPECT_EQ(vmmc_wait(to, &n, 10000), 1);
		is_message(&n, k);
		pthread_join(thread, NULL);
	}
	disconnect();
}

static void by_eventfd(void)
{
	struct vmmc_notification n;
	struct pollfd fd = { .events = POLLIN };
	uint64_t count;

	fd.fd = vmmc_notify_fd(to);
	if (!EXPECT_OK(fd.fd) || !connect("lib.eventfd", VMMC_EXPORT_NOTIFY))
		return;
	EXPECT_EQ(vmmc_notify_fd(to), fd.fd);
	for (uint32_t k = 0; k < 20; k++) {
		pthread_t thread;
		int got = 0;

		pthread_create(&thread, NULL, tell_later, (void *)(uintptr_t)k);
		/* A signal may come without news. */
		while (!got &&
		       EXPECT(poll(&fd, 1, 10000) == 1, "not signalled")) {
			EXPECT_EQ(read(fd.fd, &count, sizeof(count)),
				  sizeof(count));
			got = vmmc_poll(to, &n);
			if (!got)
				EXPECT_OK(vmmc_rearm(to));
		}
		pthread_join(thread, NULL);
		if (!EXPECT_EQ(got, 1) || !is_message(&n, k))
			break;
		EXPECT_EQ(vmmc_poll(to, &n), 0);
		EXPECT_OK(vmmc_rearm(to));
	}
	/* What came between the last look and the arming signals at once. */
	tell(20, VMMC_SEND_NOTIFY);
	sleep_ms(50);
	EXPECT_OK(vmmc_rearm(to));
	EXPECT_EQ(poll(&fd, 1, 10000), 1);
	EXPECT_EQ(vmmc_wait(to, &n, 10000), 1);
	is_message(&n, 20);
	disconnect();
}

/* Only if sender and receiver both want it. */
static void unwanted(void)
{
	struct vmmc_notification n;

	if (!connect("lib.unwanted", 0))
		return;
	tell(1, VMMC_SEND_NOTIFY);
	EXPECT_EQ(vmmc_wait(to, &n, 200), 0);
	EXPECT_EQ(*(uint32_t *)(buffer + 8), 1);
	disconnect();
	if (!connect("lib.unasked", VMMC_EXPORT_NOTIFY))
		return;
	tell(2, 0);
	EXPECT_EQ(vmmc_wait(to, &n, 200), 0);
	EXPECT_EQ(*(uint32_t *)(buffer + 16), 2);
	disconnect();
}

/* More than the ring holds: none is lost, some share an entry. */
static void overflow(void)
{
	struct vmmc_notification n;
	uint64_t end = now_ms() + 20000;
	uint32_t sum = 0, last = 0, entries = 0;

	if (!connect("lib.overflow", VMMC_EXPORT_NOTIFY))
		return;
	for (uint32_t k = 1; k <= 200; k++)
		if (!tell(k, VMMC_SEND_NOTIFY))
			return;
	while (sum < 200 && now_ms() < end) {
		int got = vmmc_wait(to, &n, 1000);

		if (!EXPECT(got >= 0, "%s", vmmc_strerror(got)))
			break;
		if (got != 1)
			continue;
		EXPECT(n.immediate > last, "%u after %u", n.immediate, last);
		last = n.immediate;
		sum += n.count;
		entries++;
	}
	EXPECT_EQ(sum, 200);
	EXPECT_EQ(last, 200);
	tap_note("  200 messages in %u entries", entries);
	disconnect();
}

static void nothing(int number)
{
	(void)number;
}

static void timeouts(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval once = { { 0, 0 }, { 0, 50000 } };
	struct vmmc_notification n;
	uint64_t begin = now_ms();

	EXPECT_EQ(vmmc_wait(to, &n, 0), 0);
	EXPECT_EQ(vmmc_wait(to, &n, 100), 0);
	EXPECT(now_ms() - begin >= 100, "back after %llu ms",
	       (unsigned long long)(now_ms() - begin));
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	EXPECT_ERROR(vmmc_wait(to, &n, 20000), -EINTR);
}

/* By eventfd, as the manual says; until there is something. */
static int by_fd(vmmc_t *v, struct vmmc_notification *n)
{
	struct pollfd fd = { .fd = vmmc_notify_fd(v), .events = POLLIN };
	uint64_t end = now_ms() + 10000, count;
	int got = vmmc_wait(v, n, 0);

	while (!got && now_ms() < end) {
		EXPECT_OK(vmmc_rearm(v));
		if (poll(&fd, 1, 10000) == 1)
			EXPECT_EQ(read(fd.fd, &count, sizeof(count)),
				  sizeof(count));
		got = vmmc_wait(v, n, 0);
	}
	return got;
}

/* The importer hears of the withdrawal, the exporter of an unmapping. */
static void lost(void)
{
	struct vmmc_notification n;
	int import_cookie;
	vmmc_export_t *mine;
	vmmc_import_t *its;

	for (int round = 0; round < 6 && !tap.case_failed; round++) {
		unsigned char *p = pages(PAGE);

		if (!EXPECT_OK(vmmc_export(to, p, PAGE, "lib.lost", 0, &cookie,
					   &mine)) ||
		    !EXPECT_OK(vmmc_import(from, node, "lib.lost", 5000,
					   &import_cookie, &its)))
			return;
		munmap(p, PAGE);
		EXPECT_EQ(round % 2 ? by_fd(to, &n) : vmmc_wait(to, &n, 10000),
			  1);
		EXPECT(n.type == VMMC_EXPORT_LOST && n.object == &cookie &&
			       n.error < 0,
		       "type %d", n.type);
		EXPECT_EQ(round % 2 ? by_fd(from, &n)
				    : vmmc_wait(from, &n, 10000),
			  1);
		EXPECT(n.type == VMMC_IMPORT_LOST &&
			       n.object == &import_cookie && n.error < 0,
		       "type %d", n.type);
		EXPECT(vmmc_send(its, 0, source, 4, 0, 0) < 0,
		       "sent to nobody");
		EXPECT_OK(vmmc_unimport(its));
		EXPECT_OK(vmmc_unexport(mine));
	}
}

int main(void)
{
	struct vmmc_info info;

	become(LIB_UID, LIB_UID);
	from = lib_open();
	if (vmmc_open(NULL, SMALL_RING, &to))
		tap_bail("no second context");
	vmmc_query(from, &info);
	node = info.node;
	buffer = pages(PAGE);
	source = pages(PAGE);
	tap_run("notifications by vmmc_poll", by_poll);
	tap_run("notifications by vmmc_wait", by_wait);
	tap_run("notifications by eventfd", by_eventfd);
	tap_run("no notification unless both sides want it", unwanted);
	tap_run("more notifications than the ring holds", overflow);
	tap_run("time-outs and signals", timeouts);
	tap_run("lost exports and imports", lost);
	vmmc_close(from);
	vmmc_close(to);
	return tap_end();
}
