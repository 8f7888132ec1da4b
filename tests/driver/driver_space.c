// SPDX-License-Identifier: Apache-2.0
/*
 * Pins and exports follow the address space: what munmap, mremap, madvise,
 * mprotect, fork, and memory pressure do to them. One node: the context sends
 * to itself, so that the card's view can be compared with the process's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "tap.h"

static struct raw r;
static unsigned char *inbox; /* exported all the time */
static uint32_t inbox_import;
enum { INBOX = 4 * 4096 };

static unsigned char *pages(unsigned n)
{
	void *p = mmap(NULL, n * RAW_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	memset(p, 1, n * RAW_PAGE);
	return p;
}

/* A page goes to the inbox; the card's status, or -1 if it came out wrong. */
static int send_page(const unsigned char *from)
{
	struct prawn_command c = raw_send(inbox_import, 0, from, RAW_PAGE);
	unsigned status;

	memset(inbox, 0xee, RAW_PAGE);
	status = raw_status(&r, &c);
	for (int i = 0; status == PRAWN_STATUS_OK && i < 1000; i++) {
		if (!memcmp(inbox, from, RAW_PAGE))
			return 0;
		sleep_ms(1); /* complete means sent, not delivered */
	}
	return status == PRAWN_STATUS_OK ? -1 : (int)status;
}

static bool next_event(struct prawn_event *event)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT,
				   .timeout_ns = 20000000000ull };

	return EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), 0) &&
	       EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENT, event), 0);
}

/* Of export and import, in either order: two kernels' business in earnest. */
static void both_withdrawn(uint32_t export, uint32_t import)
{
	struct prawn_event event;
	unsigned seen = 0;

	for (int i = 0; i < 2 && next_event(&event); i++) {
		seen |= 1u << event.kind;
		EXPECT_EQ(event.id, event.kind == PRAWN_EVENT_EXPORT_WITHDRAWN
					    ? export
					    : import);
	}
	EXPECT_EQ(seen, 1u << PRAWN_EVENT_EXPORT_WITHDRAWN |
				1u << PRAWN_EVENT_IMPORT_WITHDRAWN);
}

static void no_event(void)
{
	struct prawn_event event;

	sleep_ms(100);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENT, &event), -EAGAIN);
}

static void pinned_becomes(uint64_t bytes)
{
	for (int i = 0; i < 500 && raw_pinned(&r) != bytes; i++)
		sleep_ms(10);
	EXPECT_EQ(raw_pinned(&r), bytes);
}

static void connect(void)
{
	uint64_t length;
	uint32_t id;

	inbox = pages(4);
	if (raw_export(&r, inbox, INBOX, "space.inbox", 0, &id) ||
	    raw_import(&r, r.query.node, "space.inbox", 5000, &inbox_import,
		       &length))
		tap_bail("no import from the own node");
	EXPECT_EQ(length, INBOX);
	EXPECT_EQ(send_page(pages(1)), PRAWN_STATUS_NOT_PINNED);
}

static void unmapped(void)
{
	unsigned char *p = pages(4);

	EXPECT_EQ(raw_pin(&r, p, 4 * RAW_PAGE), 0);
	EXPECT_EQ(send_page(p + RAW_PAGE), 0);
	munmap(p + RAW_PAGE, RAW_PAGE);
	pinned_becomes(INBOX + 3 * RAW_PAGE);
	EXPECT_EQ(send_page(p), 0);

	/* other memory in the same place is not pinned, then is the new one */
	mmap(p + RAW_PAGE, RAW_PAGE, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(p + RAW_PAGE, 0x77, RAW_PAGE);
	EXPECT_EQ(send_page(p + RAW_PAGE), PRAWN_STATUS_NOT_PINNED);
	EXPECT_EQ(raw_pin(&r, p + RAW_PAGE, 1), 0);
	EXPECT_EQ(send_page(p + RAW_PAGE), 0);
	munmap(p, 4 * RAW_PAGE);
	pinned_becomes(INBOX);
}

static void moved(void)
{
	unsigned char *p = pages(2);
	unsigned char *to = pages(2);
	unsigned char *now;

	EXPECT_EQ(raw_pin(&r, p, 2 * RAW_PAGE), 0);
	memset(p, 0x31, RAW_PAGE);
	now = mremap(p, 2 * RAW_PAGE, 2 * RAW_PAGE,
		     MREMAP_MAYMOVE | MREMAP_FIXED, to);
	EXPECT(now == to, "mremap: %s", strerror(errno));
	pinned_becomes(INBOX);
	EXPECT_EQ(send_page(now), PRAWN_STATUS_NOT_PINNED);
	EXPECT_EQ(raw_pin(&r, now, 1), 0);
	EXPECT_EQ(send_page(now), 0);
	munmap(now, 2 * RAW_PAGE);
	pinned_becomes(INBOX);
}

static void dropped(void)
{
	unsigned char *p = pages(1);

	EXPECT_EQ(raw_pin(&r, p, 1), 0);
	madvise(p, RAW_PAGE, MADV_DONTNEED);
	EXPECT_EQ(send_page(p), PRAWN_STATUS_NOT_PINNED);
	EXPECT_EQ(raw_pin(&r, p, 1), 0);
	EXPECT_EQ(send_page(p), 0); /* zeros, as the process sees them */
	munmap(p, RAW_PAGE);
	pinned_becomes(INBOX);
}

/* Pinned for reading before it was ever written: then it is another page. */
static void written_later(void)
{
	unsigned char *p = pages(1);

	madvise(p, RAW_PAGE, MADV_DONTNEED);
	EXPECT_EQ(raw_pin(&r, p, 1), 0);
	memset(p, 0x42, RAW_PAGE);
	EXPECT(send_page(p) != -1, "the card sent an old page");
	EXPECT_EQ(raw_pin(&r, p, 1), 0);
	EXPECT_EQ(send_page(p), 0);
	munmap(p, RAW_PAGE);
	pinned_becomes(INBOX);
}

static void protected(void)
{
	unsigned char *p = pages(1);
	struct prawn_pin pin = { .address = (uintptr_t)p,
				 .length = 1,
				 .flags = PRAWN_PIN_WRITE };

	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), 0);
	mprotect(p, RAW_PAGE, PROT_READ);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EFAULT);
	pin.flags = 0;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), 0);
	EXPECT_EQ(send_page(p), 0);
	munmap(p, RAW_PAGE);
	pinned_becomes(INBOX);
}

/* Parent and child write; the card must go on seeing the parent's memory. */
static void forked(void)
{
	unsigned char *p = pages(2);
	int go[2], done[2], status;
	char c = 0;
	pid_t pid;

	EXPECT_EQ(raw_pin(&r, p, 2 * RAW_PAGE), 0);
	EXPECT_EQ(pipe(go) | pipe(done), 0);
	pid = fork();
	if (!pid) {
		memset(p, 0xc1, 2 * RAW_PAGE);
		memset(inbox, 0xc1, INBOX);
		(void)!write(done[1], &c, 1);
		(void)!read(go[0], &c, 1);
		_exit(p[0] != 0xc1 || inbox[0] != 0xc1);
	}
	(void)!read(done[0], &c, 1);
	memset(p, 0x11, 2 * RAW_PAGE);
	status = send_page(p);
	if (status == PRAWN_STATUS_NOT_PINNED) { /* allowed; a stale page not */
		EXPECT_EQ(raw_pin(&r, p, 2 * RAW_PAGE), 0);
		status = send_page(p);
	}
	EXPECT_EQ(status, 0);
	(void)!write(go[1], &c, 1);
	waitpid(pid, &status, 0);
	EXPECT_EQ(status, 0);
	no_event(); /* the export has survived */
	EXPECT_EQ(send_page(p), 0);
	close(go[0]), close(go[1]), close(done[0]), close(done[1]);
	munmap(p, 2 * RAW_PAGE);
	pinned_becomes(INBOX);
}

static void export_withdrawn(const char *how, bool move)
{
	unsigned char *p = pages(3);
	unsigned char *to = pages(3);
	uint64_t length;
	uint32_t id, import, other;
	char name[PRAWN_NAME_SIZE];
	struct prawn_command c;
	unsigned status = 0;

	snprintf(name, sizeof(name), "space.%s", how);
	EXPECT_EQ(raw_export(&r, p, 3 * RAW_PAGE, name, 0, &id), 0);
	EXPECT_EQ(raw_import(&r, r.query.node, name, 1000, &import, &length),
		  0);
	if (move)
		mremap(p, 3 * RAW_PAGE, 3 * RAW_PAGE,
		       MREMAP_MAYMOVE | MREMAP_FIXED, to);
	else
		munmap(p + RAW_PAGE, RAW_PAGE);
	both_withdrawn(id, import);
	pinned_becomes(INBOX);
	EXPECT_EQ(raw_pin(&r, inbox, 1), 0);
	c = raw_send(import, 0, inbox, 8);
	status = raw_status(&r, &c);
	EXPECT(status == PRAWN_STATUS_BAD_IMPORT ||
		       status == PRAWN_STATUS_IMPORT_ERROR,
	       "status %u", status);
	EXPECT_EQ(raw_import(&r, r.query.node, name, 0, &other, &length),
		  -ENOENT);
	EXPECT_EQ(raw_unimport(&r, import), 0);
	EXPECT_EQ(raw_unexport(&r, id), 0);
	EXPECT_EQ(raw_unpin(&r, inbox, 1), 0);
	munmap(p, 3 * RAW_PAGE);
	munmap(to, 3 * RAW_PAGE);
	no_event();
}

static void export_unmapped(void)
{
	export_withdrawn("munmap", false);
}

static void export_moved(void)
{
	export_withdrawn("mremap", true);
}

/* What happens to neighbours, even in the same huge page, is no reason. */
static void export_neighbours(void)
{
	enum { HUGE = 2 << 20 };
	unsigned char *area = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *p = (unsigned char *)(((uintptr_t)area + HUGE - 1) &
					     ~(uintptr_t)(HUGE - 1));
	struct prawn_event event;
	uint64_t length;
	uint32_t id, import;
	struct prawn_command c;

	madvise(p, HUGE, MADV_HUGEPAGE);
	memset(p, 3, HUGE);
	EXPECT_EQ(raw_export(&r, p + RAW_PAGE, RAW_PAGE, "space.huge", 0, &id),
		  0);
	EXPECT_EQ(raw_import(&r, r.query.node, "space.huge", 1000, &import,
			     &length),
		  0);
	munmap(p + HUGE / 2, HUGE / 2);
	madvise(p + 8 * RAW_PAGE, RAW_PAGE, MADV_DONTNEED);
	mprotect(p + 16 * RAW_PAGE, RAW_PAGE, PROT_READ);
	no_event();
	EXPECT_EQ(raw_pin(&r, inbox, 1), 0);
	memset(inbox, 0x5d, RAW_PAGE);
	c = raw_send(import, 0, inbox, RAW_PAGE);
	EXPECT_EQ(raw_status(&r, &c), 0);
	for (int i = 0; i < 1000 && p[RAW_PAGE] != 0x5d; i++)
		sleep_ms(1);
	EXPECT_EQ(p[2 * RAW_PAGE - 1], 0x5d);
	EXPECT_EQ(p[2 * RAW_PAGE], 3);
	EXPECT_EQ(p[RAW_PAGE - 1], 3);

	/* but these two take the page itself away */
	mprotect(p, HUGE / 2, PROT_READ);
	both_withdrawn(id, import);
	EXPECT_EQ(raw_unimport(&r, import), 0);
	EXPECT_EQ(raw_unexport(&r, id), 0);
	EXPECT_EQ(raw_export(&r, inbox, 1, "space.again", 0, &id), 0);
	EXPECT_EQ(raw_unexport(&r, id), 0);
	mprotect(p, HUGE / 2, PROT_READ | PROT_WRITE);
	EXPECT_EQ(raw_export(&r, p, RAW_PAGE, "space.dropped", 0, &id), 0);
	madvise(p, RAW_PAGE, MADV_DONTNEED);
	if (next_event(&event)) {
		EXPECT_EQ(event.kind, PRAWN_EVENT_EXPORT_WITHDRAWN);
		EXPECT_EQ(event.id, id);
	}
	EXPECT_EQ(raw_unexport(&r, id), 0);
	EXPECT_EQ(raw_unpin(&r, inbox, 1), 0);
	munmap(area, 2 * HUGE);
	pinned_becomes(INBOX);
}

/* Dropping the caches runs every shrinker: pins go, exports stay. */
static void pressure(void)
{
	unsigned char *p = pages(64);
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	if (fd < 0) {
		tap_skip("needs root to drop the caches");
		return;
	}
	EXPECT_EQ(raw_pin(&r, p, 64 * RAW_PAGE), 0);
	EXPECT_EQ(raw_pinned(&r), INBOX + 64 * RAW_PAGE);
	for (int i = 0; i < 20 && raw_pinned(&r) > INBOX; i++) {
		EXPECT_EQ(write(fd, "2", 1), 1);
		sleep_ms(50);
	}
	EXPECT_EQ(raw_pinned(&r), INBOX);
	EXPECT_EQ(send_page(p), PRAWN_STATUS_NOT_PINNED);
	EXPECT_EQ(raw_pin(&r, p, RAW_PAGE), 0);
	EXPECT_EQ(send_page(p), 0);
	close(fd);
	munmap(p, 64 * RAW_PAGE);
	pinned_becomes(INBOX);
}

/* Pins spread over many tables: those left empty are given back. */
static void scattered(void)
{
	enum { SPOTS = 200 };
	const uintptr_t base = 0x200000000000ull;

	for (uintptr_t i = 0; i < SPOTS; i++) {
		void *at = (void *)(base + i * (1ull << 30));
		unsigned char *p =
			mmap(at, RAW_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			     -1, 0);

		if (!EXPECT(p == at, "mmap: %s", strerror(errno)))
			return;
		memset(p, (int)i, RAW_PAGE);
		EXPECT_EQ(raw_pin(&r, p, 1), 0);
		EXPECT_EQ(send_page(p), 0);
		if (i % 3)
			EXPECT_EQ(raw_unpin(&r, p, 1), 0);
		munmap(p, RAW_PAGE);
	}
	pinned_becomes(INBOX);
	no_event();
}

enum { GOING = 48 }; /* pages */

static void *let_go(void *first)
{
	for (unsigned i = 0; i < GOING; i++)
		munmap((unsigned char *)first + i * RAW_PAGE, RAW_PAGE);
	return NULL;
}

/* To the end of a context and to the end of its memory the card agrees. */
static void closed_while_memory_goes(void)
{
	for (unsigned i = 0; i < 150; i++) {
		unsigned char *p = pages(GOING);
		pthread_t thread;
		struct raw one;

		raw_start(&one, 4); /* ends the program if the card is dead */
		if (!EXPECT_EQ(raw_pin(&one, p, GOING * RAW_PAGE), 0) ||
		    !EXPECT_EQ(pthread_create(&thread, NULL, let_go, p), 0))
			return;
		usleep(i * 20);
		raw_close(&one);
		pthread_join(thread, NULL);
	}
}

int main(void)
{
	raw_start(&r, 4);
	tap_run("a context sends to itself", connect);
	tap_run("munmap", unmapped);
	tap_run("mremap", moved);
	tap_run("MADV_DONTNEED", dropped);
	tap_run("first write after the pin", written_later);
	tap_run("mprotect", protected);
	tap_run("fork and copy-on-write", forked);
	tap_run("munmap withdraws an export", export_unmapped);
	tap_run("mremap withdraws an export", export_moved);
	tap_run("neighbours of an export", export_neighbours);
	tap_run("memory pressure", pressure);
	tap_run("pins all over the address space", scattered);
	raw_close(&r);
	tap_run("closed while its memory goes", closed_while_memory_goes);
	return tap_end();
}
