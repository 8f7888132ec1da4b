// SPDX-License-Identifier: Apache-2.0
/*
 * Sending on to an export that has just been withdrawn, by UNEXPORT or because
 * its memory was unmapped. When the exporter's call has returned, nothing
 * arrives any more; the sender gets a status.
 *
 * usage: hostile_withdrawn [ROUNDS]
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3005, ROUNDS = 40, SIZE = 16 * 4096, PIECE = 16384 };

static struct raw sender, exporter;
static unsigned rounds = ROUNDS;
static unsigned char *source;
static struct random random_state = { 5 };
static unsigned long seen[64];

static bool documented(const struct prawn_completion *done)
{
	switch (done->status) {
	case PRAWN_STATUS_OK:
	case PRAWN_STATUS_BAD_IMPORT: /* the importer's kernel knows, too */
		return true;
	case PRAWN_STATUS_IMPORT_ERROR:
		return done->detail == PRAWN_STATUS_BAD_EXPORT ||
		       done->detail == PRAWN_STATUS_BAD_KEY ||
		       /* unmapped, and not withdrawn yet */
		       done->detail == PRAWN_STATUS_RECEIVE_FAULT;
	default:
		return false;
	}
}

static bool take(unsigned *status)
{
	struct prawn_completion done;
	int got = raw_take(&sender, &done, 30000);

	if (!EXPECT(got == 1, "no completion: %d", got))
		return false;
	seen[done.status % 64]++;
	*status = done.status;
	return EXPECT(documented(&done), "status %u, detail %u", done.status,
		      done.detail);
}

static void fill_ring(uint32_t id)
{
	while (raw_room(&sender)) {
		struct prawn_command c =
			raw_send(id, random_below(&random_state, SIZE - PIECE),
				 source, PIECE);

		raw_put(&sender, &c);
	}
	raw_ring(&sender);
}

static bool empty_ring(void)
{
	unsigned status;

	while (sender.consumed != sender.producer)
		if (!take(&status))
			return false;
	return true;
}

/* Sends until that fails, as it must. */
static bool until_it_fails(uint32_t id)
{
	uint64_t end = now_ms() + 20000;
	unsigned status = PRAWN_STATUS_OK;

	while (status == PRAWN_STATUS_OK) {
		struct prawn_command c = raw_send(id, 0, source, PIECE);

		raw_put(&sender, &c);
		raw_ring(&sender);
		if (!take(&status) ||
		    !EXPECT(now_ms() < end, "sends go on succeeding"))
			return false;
	}
	return true;
}

static bool next_event(struct raw *r, unsigned kind)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT,
				   .timeout_ns = 20000000000ull };
	struct prawn_event event;
	int error = raw_ioctl(r->fd, PRAWN_IOC_WAIT, &wait);

	if (!error)
		error = raw_ioctl(r->fd, PRAWN_IOC_EVENT, &event);
	return EXPECT(!error && event.kind == kind, "event %u: %s, got %u",
		      kind, strerror(-error), event.kind);
}

static void while_sending(const char *name, bool by_unmap)
{
	struct guarded g;
	uint32_t export_id, import_id;
	long touched;

	if (!EXPECT(guarded_make(&g, SIZE, 55, NULL), "no memory") ||
	    !EXPECT_EQ(
		    raw_export(&exporter, g.buffer, SIZE, name, 0, &export_id),
		    0) ||
	    !EXPECT_EQ(raw_import(&sender, sender.query.node, name, 5000,
				  &import_id, NULL),
		       0))
		return;
	fill_ring(import_id);
	usleep((unsigned)random_below(&random_state, 3000));
	if (by_unmap) {
		munmap(g.buffer, SIZE);
		/* Most likely the same page frames; surely the same addresses.
		 */
		EXPECT(mmap(g.buffer, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
				    MAP_POPULATE,
			    -1, 0) == g.buffer,
		       "mmap");
	} else {
		EXPECT_EQ(raw_unexport(&exporter, export_id), 0);
	}
	memset(g.buffer, CHECK_FILL, SIZE);
	if (empty_ring())
		until_it_fails(import_id);
	touched = first_other(g.buffer, SIZE, CHECK_FILL);
	EXPECT(touched < 0, "byte %ld was written after the withdrawal",
	       touched);
	guarded_intact(&g, "export");
	if (by_unmap) {
		next_event(&exporter, PRAWN_EVENT_EXPORT_WITHDRAWN);
		EXPECT_EQ(raw_unexport(&exporter, export_id), 0);
	}
	next_event(&sender, PRAWN_EVENT_IMPORT_WITHDRAWN);
	EXPECT_EQ(raw_unimport(&sender, import_id), 0);
	guarded_free(&g);
}

static void unexport(void)
{
	victim_mark();
	for (unsigned i = 0; i < rounds && !tap.case_failed; i++)
		while_sending("withdrawn.unexport", false);
	victim_expect_progress();
}

static void unmap(void)
{
	victim_mark();
	for (unsigned i = 0; i < rounds && !tap.case_failed; i++)
		while_sending("withdrawn.unmap", true);
	victim_expect_progress();
}

/* The peer's export that is withdrawn every 30 ms; the peer looks after it. */
static void flicker(void)
{
	uint64_t end = now_ms() + (uint64_t)rounds * 50;
	unsigned got = 0, lost = 0;

	victim_mark();
	while (now_ms() < end && !tap.case_failed) {
		uint32_t id;
		uint64_t length;
		int error = raw_import(&sender, PEER_NODE, NAME_FLICKER, 5000,
				       &id, &length);

		if (!EXPECT(!error || error == -ENOENT, "import: %s",
			    strerror(-error)))
			return;
		if (error)
			continue;
		got++;
		fill_ring(id);
		if (!empty_ring() || !until_it_fails(id))
			return;
		lost++;
		EXPECT_EQ(raw_unimport(&sender, id), 0);
	}
	EXPECT(got >= 3 && lost == got, "%u imports, %u of them lost", got,
	       lost);
	victim_expect_progress();
}

static void statuses(void)
{
	for (unsigned i = 0; i < 64; i++)
		if (seen[i])
			tap_note("  status %2u: %lu", i, seen[i]);
	EXPECT(seen[PRAWN_STATUS_OK], "nothing ever arrived");
	EXPECT(seen[PRAWN_STATUS_IMPORT_ERROR] || seen[PRAWN_STATUS_BAD_IMPORT],
	       "nothing was ever refused");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 0);
	limit_memlock(1 << 20);
	become(UID, UID);
	raw_start(&sender, 6);
	raw_start(&exporter, 4);
	source = pages(PIECE);
	memset(source, 0x11, PIECE);
	if (raw_pin(&sender, source, PIECE))
		tap_bail("cannot pin");
	tap_run("sending on after UNEXPORT", unexport);
	tap_run("sending on after munmap of the export", unmap);
	tap_run("sending to another node's export that comes and goes",
		flicker);
	tap_run("what the sender was told", statuses);
	raw_close(&exporter);
	raw_close(&sender);
	return tap_end();
}
