// SPDX-License-Identifier: Apache-2.0
/*
 * WAIT and eventfds: time-outs, signals, several threads, and that no wake-up
 * is lost whenever it comes. One node: the context sends to itself.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "tap.h"

enum { ROUNDS = 300, SECOND = 1000000000 };

static struct raw r;
static unsigned char *buffer;
static uint32_t import;

static struct prawn_command message(uint32_t immediate)
{
	struct prawn_command c = raw_send(import, 0, buffer + RAW_PAGE, 64);

	c.flags = PRAWN_COMMAND_FLAG_NOTIFY;
	c.immediate = immediate;
	return c;
}

static void connect(void)
{
	uint64_t length;
	uint32_t id;

	buffer = mmap(NULL, 2 * RAW_PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(buffer, 1, 2 * RAW_PAGE);
	if (raw_export(&r, buffer, RAW_PAGE, "wait.inbox", PRAWN_EXPORT_NOTIFY,
		       &id) ||
	    raw_import(&r, r.query.node, "wait.inbox", 5000, &import,
		       &length) ||
	    raw_pin(&r, buffer + RAW_PAGE, RAW_PAGE))
		tap_bail("no import from the own node");
}

static void timeouts(void)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_COMPLETION |
					   PRAWN_WAIT_NOTIFICATION |
					   PRAWN_WAIT_EVENT,
				   .completion_seen = r.consumed,
				   .notification_seen = r.noticed };
	uint64_t begin = now_ms();

	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), -ETIMEDOUT);
	EXPECT_EQ(wait.ready, 0);
	EXPECT(now_ms() - begin < 500, "a time-out of 0 slept");
	wait.timeout_ns = SECOND / 5;
	begin = now_ms();
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), -ETIMEDOUT);
	EXPECT(now_ms() - begin >= 199, "woke after %llu of 200 ms",
	       (unsigned long long)(now_ms() - begin));
}

static void on_alarm(int number)
{
	(void)number;
}

static void signals(void)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT,
				   .timeout_ns = PRAWN_WAIT_FOREVER };
	struct sigaction action = { .sa_handler = on_alarm,
				    .sa_flags = SA_RESTART };
	struct itimerval timer = { .it_value = { .tv_usec = 100000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), -EINTR);
}

/* Old news is news: an entry that nobody has consumed never makes one wait. */
static void old_news(void)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_COMPLETION |
					   PRAWN_WAIT_NOTIFICATION,
				   .completion_seen = r.consumed,
				   .notification_seen = r.noticed,
				   .timeout_ns = 20ull * SECOND };
	struct prawn_command c = message(1);

	EXPECT_EQ(raw_status(&r, &c), 0);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), 0);
	EXPECT(wait.ready & PRAWN_WAIT_COMPLETION, "ready %#x", wait.ready);
	wait.mask = PRAWN_WAIT_NOTIFICATION;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), 0);
	EXPECT_EQ(wait.ready, PRAWN_WAIT_NOTIFICATION);
	r.noticed++;
	r.doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8] = r.noticed;
}

/* Sends at a random moment around the one when the other goes to sleep. */
static void *sender(void *arg)
{
	struct random random = { .state = 7 };
	struct prawn_command c;
	struct prawn_completion done;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		c = message(i);
		while (__atomic_load_n((uint32_t *)arg, __ATOMIC_ACQUIRE) != i)
			usleep(100);
		usleep((useconds_t)random_below(&random, 600));
		raw_put(&r, &c);
		raw_ring(&r);
		raw_take(&r, &done, 20000);
	}
	return NULL;
}

static void no_lost_wakeup(void)
{
	const struct prawn_notification *n;
	uint32_t turn = ~0u, wrong = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, sender, &turn);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct prawn_wait wait = { .mask = PRAWN_WAIT_NOTIFICATION,
					   .notification_seen = r.noticed,
					   .timeout_ns = 20ull * SECOND };

		__atomic_store_n(&turn, i, __ATOMIC_RELEASE);
		if (!EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), 0))
			break;
		n = &r.notification[r.noticed % r.size];
		wrong += n->seq != r.noticed + 1 || n->immediate != i;
		r.noticed++;
		r.doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8] = r.noticed;
	}
	__atomic_store_n(&turn, ROUNDS, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	EXPECT_EQ(wrong, 0);
}

static void *waiter(void *arg)
{
	struct prawn_wait *wait = arg;

	return (void *)(intptr_t)raw_ioctl(r.fd, PRAWN_IOC_WAIT, wait);
}

/* Eight sleep for the same entry; one interrupt wakes them all. */
static void many_threads(void)
{
	struct prawn_wait wait[8];
	struct prawn_command c = message(2);
	pthread_t thread[8];
	void *result;

	for (int i = 0; i < 8; i++) {
		wait[i] = (struct prawn_wait){ .mask = PRAWN_WAIT_NOTIFICATION,
					       .notification_seen = r.noticed,
					       .timeout_ns = 20ull * SECOND };
		pthread_create(&thread[i], NULL, waiter, &wait[i]);
	}
	sleep_ms(200);
	EXPECT_EQ(raw_status(&r, &c), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], &result);
		EXPECT_EQ((intptr_t)result, 0);
	}
	r.noticed++;
	r.doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8] = r.noticed;
}

/* Armed before or after the entry came: the eventfd becomes readable. */
static void eventfds(void)
{
	struct prawn_eventfd arg = { .mask = PRAWN_WAIT_NOTIFICATION };
	struct prawn_command c = message(3);
	struct pollfd poll_fd = { .events = POLLIN };
	uint64_t count;

	poll_fd.fd = eventfd(0, EFD_NONBLOCK);
	arg.fd = poll_fd.fd;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), 0);
	for (int late = 0; late < 2; late++) {
		(void)!read(poll_fd.fd, &count, sizeof(count));
		if (!late)
			r.doorbell[PRAWN_DOORBELL_ARM_NOTIFY / 8] = r.noticed;
		EXPECT_EQ(raw_status(&r, &c), 0);
		if (late) {
			sleep_ms(100);
			r.doorbell[PRAWN_DOORBELL_ARM_NOTIFY / 8] = r.noticed;
		}
		EXPECT_EQ(poll(&poll_fd, 1, 20000), 1);
		for (int i = 0;
		     i < 1000 &&
		     r.notification[r.noticed % r.size].seq != r.noticed + 1;
		     i++)
			sleep_ms(1);
		EXPECT_EQ(r.notification[r.noticed % r.size].seq,
			  r.noticed + 1);
		r.noticed++;
		r.doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8] = r.noticed;
	}
	arg.fd = -1;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), 0);
	close(poll_fd.fd);
}

int main(void)
{
	raw_start(&r, 6);
	connect();
	tap_run("time-outs", timeouts);
	tap_run("signals", signals);
	tap_run("old news", old_news);
	tap_run("no wake-up is lost", no_lost_wakeup);
	tap_run("many threads wait", many_threads);
	tap_run("eventfd", eventfds);
	raw_close(&r);
	return tap_end();
}
