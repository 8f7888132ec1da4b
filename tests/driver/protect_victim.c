// SPDX-License-Identifier: Apache-2.0
/*
 * The victim: streams to the peer until SIGTERM, in a window of a few messages,
 * and counts what the peer has verified. It fails when a message was wrong,
 * when a send fails, when a canary page changed, or when nothing gets through
 * for STUCK_MS.
 *
 * usage: protect_victim   (as root; gives its privileges up)
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <prawn.h>
#include <vmmc.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 2001, STUCK_MS = 10000, MIN_MESSAGES = 20 };

static volatile sig_atomic_t stopping;
static struct victim_state *state;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

static void share_state(void)
{
	int fd =
		open(VICTIM_FILE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || ftruncate(fd, sizeof(*state)))
		tap_bail("cannot make %s", VICTIM_FILE);
	state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED,
		     fd, 0);
	if (state == MAP_FAILED)
		tap_bail("cannot map %s", VICTIM_FILE);
	close(fd);
}

struct stream {
	vmmc_t *v;
	vmmc_import_t *to;
	struct guarded source;
	struct guarded ack;
	uint64_t sent;
	uint64_t counted;
	uint32_t length[STREAM_SLOTS];
	struct random random;
	uint64_t progress_ms;
};

static const volatile struct ack *ack_of(const struct stream *s)
{
	return (const volatile struct ack *)s->ack.buffer;
}

static bool one_message(struct stream *s)
{
	unsigned slot = (unsigned)(s->sent % STREAM_SLOTS);
	uint32_t length =
		1 + (uint32_t)random_below(&s->random, STREAM_SLOT - 64);
	unsigned char *from = s->source.buffer + slot * STREAM_SLOT +
			      random_below(&s->random, 64);
	int error;

	pattern_fill(from, length, s->sent);
	s->length[slot] = length;
	error = vmmc_send(s->to, slot * STREAM_SLOT, from, length,
			  VMMC_SEND_NOTIFY, (uint32_t)s->sent);
	s->sent++;
	return EXPECT(!error, "message %llu: %s",
		      (unsigned long long)s->sent - 1, vmmc_strerror(error));
}

/* Counts what the peer has confirmed; false if it does not go on. */
static bool take_acks(struct stream *s)
{
	uint64_t now = now_ms();
	uint64_t gap = now - s->progress_ms;

	if (ack_of(s)->messages == s->counted) {
		state->worst_gap_ms =
			gap > state->worst_gap_ms ? gap : state->worst_gap_ms;
		return EXPECT(gap < STUCK_MS, "nothing got through for %u ms",
			      STUCK_MS);
	}
	while (s->counted < ack_of(s)->messages) {
		state->bytes += s->length[s->counted % STREAM_SLOTS];
		state->messages = ++s->counted;
	}
	s->progress_ms = now;
	return EXPECT(!ack_of(s)->bad, "the peer got %llu wrong messages",
		      (unsigned long long)ack_of(s)->bad);
}

static void run(struct stream *s)
{
	bool good = true;
	int error;

	s->progress_ms = now_ms();
	state->running = 1;
	while (good && (!stopping || s->counted < s->sent)) {
		if (!stopping && s->sent - s->counted < STREAM_SLOTS)
			good = one_message(s);
		else
			sleep_ms(0);
		good = good && take_acks(s);
	}
	error = vmmc_send(s->to, 0, s->source.buffer, 0, VMMC_SEND_NOTIFY,
			  STREAM_END);
	EXPECT(!error, "last message: %s", vmmc_strerror(error));
}

static void body(void)
{
	struct stream s = { .random = { 1 } };
	vmmc_export_t *ack;
	vmmc_import_t *secret;
	int error;

	error = vmmc_open(NULL, 0, &s.v);
	if (!EXPECT(!error, "open: %s", vmmc_strerror(error)))
		return;
	if (!EXPECT(guarded_make(&s.source, STREAM_SLOTS * STREAM_SLOT, 11,
				 VICTIM_SOURCE) &&
			    guarded_make(&s.ack, PAGE, 22, NULL),
		    "no memory"))
		return;
	error = vmmc_export(s.v, s.ack.buffer, PAGE, NAME_ACK, 0, NULL, &ack);
	if (!EXPECT(!error, "export: %s", vmmc_strerror(error)))
		return;
	error = vmmc_import(s.v, PEER_NODE, NAME_STREAM, 60000, NULL, &s.to);
	if (!EXPECT(!error, "import: %s", vmmc_strerror(error)))
		return;
	error = vmmc_import(s.v, PEER_NODE, NAME_SECRET, 60000, NULL, &secret);
	if (!EXPECT(!error, "import: %s", vmmc_strerror(error)))
		return;
	run(&s);
	guarded_intact(&s.source, "source");
	guarded_intact(&s.ack, "acknowledgements");
	EXPECT(first_other(s.ack.buffer + sizeof(struct ack),
			   PAGE - sizeof(struct ack), 0) < 0,
	       "something else was written to the export");
	EXPECT(s.counted >= MIN_MESSAGES, "only %llu messages got through",
	       (unsigned long long)s.counted);
	tap_note("%llu messages, %llu KiB verified, longest gap %llu ms",
		 (unsigned long long)s.counted,
		 (unsigned long long)state->bytes >> 10,
		 (unsigned long long)state->worst_gap_ms);
	vmmc_close(s.v);
}

static void guarded_body(void)
{
	body();
	state->failed = tap.case_failed;
	state->running = 0;
}

int main(void)
{
	share_state();
	become(UID, UID);
	signal(SIGTERM, on_signal);
	tap_run("the victim's stream stays intact and never stops",
		guarded_body);
	return tap_end();
}
