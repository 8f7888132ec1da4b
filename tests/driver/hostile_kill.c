// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that die in the middle, by kill -9, by exit, by closing the file.
 * No page may be freed while the card can still touch it: right after a death
 * we map fresh memory, which the kernel makes of the pages just freed, fill it
 * with a canary, and look at it again when everything has settled.
 *
 * usage: hostile_kill [ROUNDS]
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum {
	UID = 3008,
	ROUNDS = 100,
	MESSAGE = 1 << 20,
	FRESH = 2 * MESSAGE + (1 << 20),
	RING_LOG2 = 5,
	FRESH_FILL = 0x5a, /* nobody sends that */
};

static unsigned rounds = ROUNDS;
static struct raw r; /* the parent's: receives, or sends to the child */
static struct guarded inbox;
static uint32_t inbox_id;
static unsigned char *source;
static atomic_bool churning;
static struct random random_state = { 9 };

enum ending { KILLED, EXITS, CLOSES };

/* In the child: 1 MiB messages into the parent's inbox, without end. */
static void send_on(int ready, enum ending how)
{
	unsigned char *mine = pages(MESSAGE);
	struct prawn_completion done;
	uint32_t id;

	raw_start(&r, RING_LOG2);
	memset(mine, 0x22, MESSAGE);
	if (raw_pin(&r, mine, MESSAGE) ||
	    raw_import(&r, r.query.node, "kill.inbox", 5000, &id, NULL))
		_exit(1);
	for (unsigned i = 0; i < 4; i++) {
		struct prawn_command c = raw_send(id, 0, mine, MESSAGE);

		raw_put(&r, &c);
	}
	raw_ring(&r);
	if (how == EXITS)
		_exit(0);
	if (how == CLOSES) {
		close(r.fd); /* mappings keep the file */
		raw_unmap(&r);
		munmap(mine, MESSAGE);
		_exit(0);
	}
	if (write(ready, "x", 1) != 1)
		_exit(1);
	for (;;) {
		struct prawn_command c = raw_send(id, 0, mine, MESSAGE);

		while (!raw_room(&r) && raw_take(&r, &done, 10000) == 1)
			;
		raw_put(&r, &c);
		raw_ring(&r);
	}
}

/* In the child: a receive buffer, which the parent floods. */
static void receive(int ready)
{
	unsigned char *mine = pages(MESSAGE);
	uint32_t id;

	raw_start(&r, RING_LOG2);
	if (raw_export(&r, mine, MESSAGE, "kill.outbox", 0, &id) ||
	    write(ready, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Takes what is freed at the very moment, looks after it for a while. */
static void *churn(void *unused)
{
	enum { CHUNK = 1 << 20, HELD = 4 };
	unsigned char *held[HELD] = { NULL };

	(void)unused;
	for (unsigned i = 0; churning; i = (i + 1) % HELD) {
		long touched = -1;

		if (held[i]) {
			touched = first_other(held[i], CHUNK, FRESH_FILL);
			munmap(held[i], CHUNK);
		}
		EXPECT(touched < 0, "byte %ld of fresh memory was written",
		       touched);
		held[i] = pages(CHUNK);
		memset(held[i], FRESH_FILL, CHUNK);
		usleep(500);
	}
	for (unsigned i = 0; i < HELD; i++)
		if (held[i])
			munmap(held[i], CHUNK);
	return NULL;
}

/* What the dead process had is ours now. */
static unsigned char *canary(void)
{
	unsigned char *p = pages(FRESH);

	memset(p, FRESH_FILL, FRESH);
	return p;
}

static void check_canary(unsigned char *p)
{
	long touched = first_other(p, FRESH, FRESH_FILL);

	EXPECT(touched < 0, "byte %ld of reused memory was written", touched);
	munmap(p, FRESH);
}

static bool reap(pid_t pid, enum ending how)
{
	int status = 0;

	EXPECT(waitpid(pid, &status, 0) == pid, "waitpid");
	return how == KILLED ? EXPECT(WIFSIGNALED(status), "child left: %#x",
				      (unsigned)status)
			     : EXPECT(status == 0, "child failed: %#x",
				      (unsigned)status);
}

static pid_t start(bool sends, enum ending how)
{
	int pipe_fd[2];
	char byte;
	pid_t pid;

	if (pipe(pipe_fd))
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		close(pipe_fd[0]);
		close(r.fd); /* the parent's context is none of ours */
		if (sends)
			send_on(pipe_fd[1], how);
		else
			receive(pipe_fd[1]);
	}
	close(pipe_fd[1]);
	if (how == KILLED)
		EXPECT(read(pipe_fd[0], &byte, 1) == 1,
		       "the child did not start");
	close(pipe_fd[0]);
	return pid;
}

/* Messages may be cut short, but each byte is the inbox' own or the child's. */
static void check_inbox(void)
{
	for (size_t i = 0; i < MESSAGE; i++) {
		if (inbox.buffer[i] != 0x22 && inbox.buffer[i] != CHECK_FILL) {
			FAIL("inbox: byte %zu is %#x", i, inbox.buffer[i]);
			break;
		}
	}
	guarded_intact(&inbox, "inbox");
}

static void senders(enum ending how, unsigned count)
{
	pthread_t thread;

	victim_mark();
	churning = true;
	pthread_create(&thread, NULL, churn, NULL);
	for (unsigned i = 0; i < count && !tap.case_failed; i++) {
		pid_t pid;
		unsigned char *fresh;

		memset(inbox.buffer, CHECK_FILL, MESSAGE);
		pid = start(true, how);
		if (how == KILLED) {
			usleep((unsigned)random_below(&random_state, 4000));
			kill(pid, SIGKILL);
		}
		if (!reap(pid, how))
			break;
		fresh = canary();
		check_inbox();
		check_canary(fresh);
	}
	churning = false;
	pthread_join(thread, NULL);
	victim_expect_progress();
}

static void killed_senders(void)
{
	senders(KILLED, rounds);
}

static void leaving_senders(void)
{
	senders(EXITS, rounds / 4);
}

static void closing_senders(void)
{
	senders(CLOSES, rounds / 4);
}

/* Keeps the ring full while the receiver dies. */
static void flood(uint32_t id)
{
	struct prawn_completion done;

	while (raw_take(&r, &done, 0) == 1)
		;
	while (raw_room(&r)) {
		struct prawn_command c = raw_send(id, 0, source, MESSAGE);

		raw_put(&r, &c);
	}
	raw_ring(&r);
}

static void killed_receivers(void)
{
	pthread_t thread;

	victim_mark();
	churning = true;
	pthread_create(&thread, NULL, churn, NULL);
	for (unsigned i = 0; i < rounds / 2 && !tap.case_failed; i++) {
		pid_t pid = start(false, KILLED);
		struct prawn_completion done;
		unsigned char *fresh;
		uint32_t id;

		if (!EXPECT_EQ(raw_import(&r, r.query.node, "kill.outbox", 5000,
					  &id, NULL),
			       0)) {
			kill(pid, SIGKILL);
			reap(pid, KILLED);
			break;
		}
		flood(id);
		usleep((unsigned)random_below(&random_state, 4000));
		kill(pid, SIGKILL);
		flood(id);
		reap(pid, KILLED);
		fresh = canary();
		while (r.consumed != r.producer)
			if (!EXPECT(raw_take(&r, &done, 30000) == 1,
				    "no completion"))
				break;
		EXPECT_EQ(raw_unimport(&r, id), 0);
		check_canary(fresh);
	}
	churning = false;
	pthread_join(thread, NULL);
	victim_expect_progress();
}

/* A process that dies leaves nothing: not a context, name, or table entry. */
static void nothing_left(void)
{
	static struct raw all[PRAWN_CONTEXTS];
	uint32_t id;
	unsigned n = 0;

	while (n < PRAWN_CONTEXTS && !raw_open(&all[n])) {
		if (raw_setup(&all[n], 4)) {
			raw_close(&all[n]);
			break;
		}
		n++;
	}
	/* Ours and the victim's are in use, and nobody else's. */
	EXPECT(n >= PRAWN_CONTEXTS - 3, "only %u contexts are free", n);
	while (n)
		raw_close(&all[--n]);
	EXPECT_EQ(raw_import(&r, r.query.node, "kill.outbox", 0, &id, NULL),
		  -ENOENT);
	EXPECT_EQ(raw_export(&r, source, 4096, "kill.outbox", 0, &id), 0);
	EXPECT_EQ(raw_unexport(&r, id), 0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 0);
	limit_memlock(64 << 20);
	become(UID, UID);
	raw_start(&r, RING_LOG2);
	source = pages(MESSAGE);
	memset(source, 0x33, MESSAGE);
	if (!guarded_make(&inbox, MESSAGE, 66, NULL) ||
	    raw_pin(&r, source, MESSAGE) ||
	    raw_export(&r, inbox.buffer, MESSAGE, "kill.inbox", 0, &inbox_id))
		tap_bail("cannot pin or export");
	tap_run("kill -9 of a process that sends", killed_senders);
	tap_run("exit while sending", leaving_senders);
	tap_run("close and munmap while sending", closing_senders);
	tap_run("kill -9 of a process that receives", killed_receivers);
	tap_run("nothing is left of the dead", nothing_left);
	raw_close(&r);
	return tap_end();
}
