// SPDX-License-Identifier: Apache-2.0
/*
 * Random ioctls: every number, known or not, with random structures, random
 * pointers, and signals that interrupt what blocks. Each ends in an errno that
 * the interface knows, and the card serves on.
 *
 * usage: hostile_ioctl [CALLS [SEED]]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3007, CALLS = 20000, INTERRUPT_US = 20000, LIMIT = 1 << 20 };

static unsigned long calls = CALLS;
static struct random seed = { 4711 };
static unsigned char *arena; /* where random addresses mostly point */
static const unsigned long known[] = {
	PRAWN_IOC_QUERY,   PRAWN_IOC_SETUP,    PRAWN_IOC_PIN,
	PRAWN_IOC_UNPIN,   PRAWN_IOC_EXPORT,   PRAWN_IOC_UNEXPORT,
	PRAWN_IOC_IMPORT,  PRAWN_IOC_UNIMPORT, PRAWN_IOC_WAIT,
	PRAWN_IOC_EVENTFD, PRAWN_IOC_EVENT,    PRAWN_IOC_COUNTER,
};
enum { KNOWN = sizeof(known) / sizeof(*known), ARENA = 1 << 20 };

static bool is_known(unsigned long request)
{
	for (unsigned i = 0; i < KNOWN; i++)
		if (known[i] == request)
			return true;
	return false;
}

static bool documented(int error)
{
	static const int all[] = {
		0,	EPERM,	   ENODEV,    EIO,    EFAULT,
		EINVAL, EINTR,	   ENOTCONN,  ENOMEM, EALREADY,
		ENOSPC, EEXIST,	   ENOENT,    EACCES, EOPNOTSUPP,
		EAGAIN, ETIMEDOUT, EHOSTDOWN, EBADF,  EDQUOT,
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] == -error)
			return true;
	return false;
}

static void on_alarm(int number)
{
	(void)number;
}

/* Whatever blocks is interrupted: no SA_RESTART. */
static void catch_alarms(void)
{
	struct sigaction action = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &action, NULL);
}

/* Until the thread ends, a signal every now and then. */
static void join_impatiently(pthread_t thread)
{
	while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
		usleep(INTERRUPT_US);
		pthread_kill(thread, SIGALRM);
	}
}

static void start_timer(void)
{
	struct itimerval often = { { 0, INTERRUPT_US }, { 0, INTERRUPT_US } };

	setitimer(ITIMER_REAL, &often, NULL);
}

static void stop_timer(void)
{
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &never, NULL);
}

/* Likely values: small numbers, our own addresses, limits, and anything. */
static uint64_t value(struct random *random)
{
	switch (random_below(random, 8)) {
	case 0:
		return 0;
	case 1:
		return random_below(random, 16);
	case 2:
		return (uintptr_t)arena + random_below(random, ARENA);
	case 3:
		return random_below(random, 4 * RAW_PAGE);
	case 4:
		return 1ull << random_below(random, 64);
	case 5:
		return ~0ull << random_below(random, 64);
	default:
		return random_next(random);
	}
}

/* Structures of this interface are made of words of 4 and 8 bytes. */
static void fill(struct random *random, unsigned char *to, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t v = value(random);

		if (random_below(random, 2))
			v = (v & 0xffffffff) | value(random) << 32;
		memcpy(to + i, &v, size - i < 8 ? size - i : 8);
	}
}

union argument {
	unsigned char bytes[512];
	struct prawn_setup setup;
	struct prawn_pin pin;
	struct prawn_export export;
	struct prawn_import import;
	struct prawn_eventfd eventfd;
};

/* Random alone would hardly ever get past the first checks. */
static void make_plausible(struct random *random, unsigned long request,
			   union argument *a)
{
	char name[8] = { 'f', 'u', 'z',
			 'z', '.', (char)('a' + random_below(random, 8)),
			 0,   0 };

	switch (request) {
	case PRAWN_IOC_SETUP:
		memset(a, 0, sizeof(*a));
		a->setup.command_log2 = 4 + (uint32_t)random_below(random, 3);
		a->setup.notify_log2 = 4;
		break;
	case PRAWN_IOC_PIN:
	case PRAWN_IOC_UNPIN:
		a->pin.address = (uintptr_t)arena + random_below(random, ARENA);
		a->pin.length = 1 + random_below(random, ARENA);
		a->pin.flags &= request == PRAWN_IOC_PIN;
		a->pin.rsvd = 0;
		break;
	case PRAWN_IOC_EXPORT:
		a->export.address =
			(uintptr_t)arena + random_below(random, ARENA);
		a->export.length = 1 + random_below(random, 64 * RAW_PAGE);
		a->export.access &= 3;
		a->export.flags &= 1;
		a->export.rsvd = 0;
		memcpy(a->export.name, name, sizeof(name));
		a->export.name[PRAWN_NAME_SIZE - 1] = 0;
		break;
	case PRAWN_IOC_IMPORT:
		a->import.node = (uint32_t)random_below(random, 3);
		a->import.flags = 0;
		a->import.timeout_ms = (uint32_t)random_below(random, 30);
		a->import.rsvd = 0;
		memset(a->import.name, 0, sizeof(a->import.name));
		memcpy(a->import.name,
		       random_below(random, 2) ? NAME_SANDBOX : name,
		       sizeof(name));
		break;
	default:
		break;
	}
}

struct fuzzer {
	struct random random;
	int fd;
	int event;
	unsigned long calls;
	unsigned long good; /* that succeeded */
};

static void *address(struct fuzzer *f, union argument *a)
{
	switch (random_below(&f->random, 24)) {
	case 0:
		return NULL;
	case 1:
		return (void *)0xffff888000001000;
	case 2:
		return arena + ARENA - 3; /* ends in nothing */
	case 3:
		return (void *)random_next(&f->random);
	default:
		return a;
	}
}

static void one_call(struct fuzzer *f)
{
	unsigned long request = known[random_below(&f->random, KNOWN)];
	union argument a;
	int error;

	fill(&f->random, a.bytes, sizeof(a));
	if (random_below(&f->random, 4) == 0)
		request = _IOC(random_below(&f->random, 4), PRAWN_IOC_MAGIC,
			       random_below(&f->random, 256),
			       random_below(&f->random, 300));
	if (random_below(&f->random, 2))
		make_plausible(&f->random, request, &a);
	if (request == PRAWN_IOC_EVENTFD && random_below(&f->random, 2))
		a.eventfd.fd = random_below(&f->random, 2) ? f->event : f->fd;
	error = raw_ioctl(f->fd, request, address(f, &a));
	if (is_known(request))
		EXPECT(documented(error), "ioctl %#lx: %s", request,
		       strerror(-error));
	else
		EXPECT(error == -ENOTTY, "ioctl %#lx is unknown, but: %s",
		       request, strerror(-error));
	f->good += !error;
}

static void *fuzz(void *arg)
{
	struct fuzzer *f = arg;

	for (unsigned long i = 0; i < f->calls; i++)
		one_call(f);
	return NULL;
}

/* Two threads at one file, then another file. */
static void all_of_it(void)
{
	enum { PER_FILE = 2000, THREADS = 2 };
	struct fuzzer f[THREADS] = { { seed, 0, 0, 0, 0 },
				     { { seed.state + 1 }, 0, 0, 0, 0 } };

	victim_mark();
	for (unsigned long done = 0; done < calls && !tap.case_failed;
	     done += PER_FILE) {
		int fd = open(RAW_DEVICE, O_RDWR | O_CLOEXEC);
		int event = eventfd(0, EFD_CLOEXEC);
		pthread_t thread[THREADS];

		if (!EXPECT(fd >= 0, "open: %s", strerror(errno)))
			break;
		for (int i = 0; i < THREADS; i++) {
			f[i].fd = fd;
			f[i].event = event;
			f[i].calls = PER_FILE / THREADS;
			pthread_create(&thread[i], NULL, fuzz, &f[i]);
		}
		for (int i = 0; i < THREADS; i++)
			join_impatiently(thread[i]);
		close(event);
		close(fd);
	}
	tap_note("  %lu calls succeeded", f[0].good + f[1].good);
	EXPECT(f[0].good > calls / 100, "hardly anything was accepted");
	victim_expect_progress();
}

/* Every number with nothing, with everything, without a pointer. */
static void every_number(void)
{
	struct raw r;
	unsigned char ones[512];

	raw_start(&r, 4);
	memset(ones, 0xff, sizeof(ones));
	start_timer();
	for (unsigned number = 0; number < 256; number++) {
		for (unsigned direction = 0; direction < 4; direction++) {
			unsigned long request =
				_IOC(direction, PRAWN_IOC_MAGIC, number, 8);

			if (!is_known(request))
				EXPECT_EQ(raw_ioctl(r.fd, request, ones),
					  -ENOTTY);
		}
	}
	for (unsigned i = 0; i < KNOWN; i++) {
		int error;

		EXPECT_EQ(raw_ioctl(r.fd, known[i], NULL), -EFAULT);
		EXPECT_EQ(raw_ioctl(r.fd, known[i], (void *)~0xfful), -EFAULT);
		memset(ones, 0xff, sizeof(ones));
		error = raw_ioctl(r.fd, known[i], ones);
		EXPECT(documented(error), "ioctl %#lx of ones: %s", known[i],
		       strerror(-error));
	}
	/* Another driver's numbers. */
	EXPECT_EQ(raw_ioctl(r.fd, TCGETS, ones), -ENOTTY);
	stop_timer();
	raw_close(&r);
}

static void afterwards(void)
{
	const struct prawn_command nop = { .opcode = PRAWN_OPCODE_NOP,
					   .cookie = 1 };
	struct raw r;

	raw_start(&r, 4);
	EXPECT_EQ(raw_status(&r, &nop), PRAWN_STATUS_OK);
	EXPECT_EQ(raw_pinned(&r), 0);
	raw_close(&r);
}

int main(int argc, char **argv)
{
	catch_alarms();
	if (argc > 1)
		calls = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed.state = strtoull(argv[2], NULL, 0);
	limit_memlock(LIMIT);
	become(UID, UID);
	arena = pages(ARENA + RAW_PAGE);
	munmap(arena + ARENA, RAW_PAGE);
	tap_note("%lu calls, seed %" PRIu64, calls, seed.state);
	tap_run("every ioctl number", every_number);
	tap_run("random ioctls", all_of_it);
	tap_run("the card serves on", afterwards);
	return tap_end();
}
