// SPDX-License-Identifier: Apache-2.0
/*
 * Transfers against a changing address space: one thread sends slots of a
 * region and verifies what arrived, others unmap, remap, protect and fork it
 * and press memory. A slot is locked while it is changed or sent, so its
 * content is known; its neighbours in the same tables change freely meanwhile.
 * One more thread sends without locks, for whatever comes of it. Canaries lie
 * around the inbox.
 *
 * usage: driver_stress [SECONDS [SEED]]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "tap.h"

enum { SLOTS = 64, SLOT = 2 * 4096, CANARY = 0x5a };

static struct slot {
	pthread_mutex_t lock;
	unsigned char *at; /* fixed */
	uint64_t stamp;	   /* what its first 8 bytes of each page hold */
} slot[SLOTS];

static unsigned char *inbox; /* canary page, SLOT bytes, canary page */
static struct raw r;	     /* of the verifying sender */
static struct raw wild;	     /* of the other: an address space has many */
static uint32_t import, wild_import;
static unsigned seconds = 20;
static uint64_t seed = 1;
static atomic_bool end;
static atomic_ulong sends, repins, changes, forks, drops, wild_sends;

/* Every word of a slot follows from its stamp. */
static void fill(struct slot *s, uint64_t stamp)
{
	uint64_t *word = (uint64_t *)s->at;

	s->stamp = stamp;
	for (unsigned i = 0; i < SLOT / 8; i++)
		word[i] = stamp * 0x9e3779b97f4a7c15ull + i;
}

static unsigned wrong_words(const void *p, uint64_t stamp)
{
	const uint64_t *word = p;
	unsigned wrong = 0;

	for (unsigned i = 0; i < SLOT / 8; i++)
		wrong += word[i] != stamp * 0x9e3779b97f4a7c15ull + i;
	return wrong;
}

static void map_slot(struct slot *s, uint64_t stamp)
{
	void *p = mmap(s->at, SLOT, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (p != s->at)
		tap_bail("mmap: %s", strerror(errno));
	fill(s, stamp);
}

static unsigned char canary_wrong(void)
{
	unsigned char wrong = 0;

	for (unsigned i = 0; i < RAW_PAGE; i++)
		wrong |= (unsigned char)(inbox[i] ^ CANARY) |
			 (unsigned char)(inbox[RAW_PAGE + SLOT + i] ^ CANARY);
	return wrong;
}

/* Sends a slot, pinning what the card misses; verified in the inbox. */
static bool send_slot(struct slot *s)
{
	struct prawn_command c = raw_send(import, 0, s->at, SLOT);
	const unsigned char *got = inbox + RAW_PAGE;
	unsigned status, wrong = 1;

	memset(inbox + RAW_PAGE, 0, SLOT);
	for (int i = 0; i < 1000; i++) {
		status = raw_status(&r, &c);
		if (status != PRAWN_STATUS_NOT_PINNED)
			break;
		repins++;
		if (raw_pin(&r, s->at, SLOT) && errno != EAGAIN)
			break;
	}
	if (!EXPECT_EQ(status, PRAWN_STATUS_OK))
		return false;
	/* The last bytes arrive last. */
	for (int i = 0; i < 20000 && wrong; i++) {
		wrong = wrong_words(got, s->stamp);
		if (wrong && i > 100)
			usleep(500);
	}
	sends++;
	return EXPECT_EQ(wrong, 0) && EXPECT_EQ(canary_wrong(), 0);
}

static void *sender(void *arg)
{
	struct random random = { .state = seed };
	bool good = true;

	(void)arg;
	while (!end && good) {
		struct slot *s = &slot[random_below(&random, SLOTS)];

		pthread_mutex_lock(&s->lock);
		good = send_slot(s);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* No expectation but that it ends: any status, any of the slot's contents. */
static void *wild_sender(void *arg)
{
	struct random random = { .state = seed + 1 };

	(void)arg;
	while (!end) {
		unsigned char *at = slot[random_below(&random, SLOTS)].at;
		struct prawn_command c =
			raw_send(wild_import, 0, at,
				 (uint32_t)random_below(&random, SLOT) + 1);

		raw_pin(&wild, at, SLOT);
		raw_status(&wild, &c);
		if (!random_below(&random, 4))
			raw_unpin(&wild, at, SLOT);
		wild_sends++;
	}
	return NULL;
}

static void move_slot(struct slot *s, uint64_t stamp)
{
	void *away = mremap(s->at, SLOT, SLOT, MREMAP_MAYMOVE | MREMAP_FIXED,
			    (char *)s->at - (1ull << 32));

	if (away == MAP_FAILED)
		tap_bail("mremap: %s", strerror(errno));
	munmap(away, SLOT);
	map_slot(s, stamp);
}

static void *changer(void *arg)
{
	struct random random = { .state = seed + 2 };
	uint64_t stamp = 1;

	(void)arg;
	while (!end) {
		struct slot *s = &slot[random_below(&random, SLOTS)];

		pthread_mutex_lock(&s->lock);
		stamp++;
		switch (random_below(&random, 6)) {
		case 0: /* new memory in its place, in one step or in two */
			map_slot(s, stamp);
			break;
		case 1:
			munmap(s->at, SLOT);
			map_slot(s, stamp);
			break;
		case 2:
			move_slot(s, stamp);
			break;
		case 3:
			madvise(s->at, SLOT, MADV_DONTNEED);
			fill(s, stamp);
			break;
		case 4:
			mprotect(s->at, SLOT, PROT_READ);
			mprotect(s->at, SLOT, PROT_READ | PROT_WRITE);
			fill(s, stamp);
			break;
		default: /* the same memory */
			fill(s, stamp);
		}
		pthread_mutex_unlock(&s->lock);
		changes++;
	}
	return NULL;
}

/* Parent and child write the same pages afterwards. */
static void *forker(void *arg)
{
	(void)arg;
	while (!end) {
		pid_t pid = fork();

		if (!pid) {
			for (unsigned i = 0; i < SLOTS; i++)
				*(volatile unsigned char *)slot[i].at = 0xcc;
			memset(inbox, 0xcc, SLOT + 2 * RAW_PAGE);
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
		forks++;
		usleep(20000);
	}
	return NULL;
}

static void *presser(void *arg)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	(void)arg;
	while (!end && fd >= 0) {
		drops += write(fd, "2", 1) == 1;
		usleep(50000);
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void prepare(void)
{
	unsigned char *base = (unsigned char *)0x300000000000ull;
	unsigned char *wild_inbox;
	uint64_t length;
	uint32_t id;

	for (unsigned i = 0; i < SLOTS; i++) {
		pthread_mutex_init(&slot[i].lock, NULL);
		/* some adjacent, some not, over several tables */
		slot[i].at = base + i * (i % 2 ? 64ull << 10 : SLOT) +
			     (uint64_t)(i % 2) * (1 << 30);
		map_slot(&slot[i], 0);
	}
	inbox = mmap(NULL, SLOT + 2 * RAW_PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	wild_inbox = mmap(NULL, SLOT, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(inbox, CANARY, SLOT + 2 * RAW_PAGE);
	if (raw_export(&r, inbox + RAW_PAGE, SLOT, "stress.inbox", 0, &id) ||
	    raw_import(&r, r.query.node, "stress.inbox", 20000, &import,
		       &length) ||
	    raw_export(&wild, wild_inbox, SLOT, "stress.wild", 0, &id) ||
	    raw_import(&wild, r.query.node, "stress.wild", 20000, &wild_import,
		       &length))
		tap_bail("no import from the own node");
}

static void all_at_once(void)
{
	void *(*const body[])(void *) = { sender, wild_sender, changer, forker,
					  presser };
	enum { THREADS = sizeof(body) / sizeof(body[0]) };
	pthread_t thread[THREADS];
	struct prawn_event event;

	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, body[i], NULL);
	for (unsigned i = 0; i < seconds * 10 && !tap.case_failed; i++)
		sleep_ms(100);
	end = true;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tap_note("%lu sends, %lu pinned anew, %lu changes, %lu forks, "
		 "%lu drops, %lu wild sends",
		 sends, repins, changes, forks, drops, wild_sends);
	EXPECT(sends > 10 && changes > 10 && forks > 2, "too little happened");
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENT, &event), -EAGAIN);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	raw_start(&r, 6);
	raw_start(&wild, 6);
	prepare();
	tap_run("transfers while the address space changes", all_at_once);
	raw_close(&wild);
	raw_close(&r);
	return tap_end();
}
