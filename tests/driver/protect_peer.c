// SPDX-License-Identifier: Apache-2.0
/*
 * The other node: verifies the victim's stream, verifies what the tests of the
 * library send, offers buffers to be attacked, and checks their canaries. Ends
 * when it is told to (CHECK_QUIT), with a failure if anything was wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <vmmc.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

static atomic_bool quitting;
static atomic_ulong verified_messages, checked_messages, flickers;

static vmmc_t *open_card(void)
{
	vmmc_t *v = NULL;
	int error = vmmc_open(NULL, 0, &v);

	if (error)
		tap_bail("open: %s", vmmc_strerror(error));
	return v;
}

static struct guarded *offer(vmmc_t *v, size_t size, const char *name,
			     unsigned flags, vmmc_export_t **out)
{
	struct guarded *g = calloc(1, sizeof(*g));
	vmmc_export_t *e;
	int error;

	if (!g || !guarded_make(g, size, 77, NULL))
		tap_bail("no memory");
	memset(g->buffer, CHECK_FILL, size);
	error = vmmc_export(v, g->buffer, size, name, flags, g, out ? out : &e);
	if (error)
		tap_bail("export %s: %s", name, vmmc_strerror(error));
	return g;
}

/* ---- the victim's stream ---- */

static void stream_message(const struct guarded *g, struct ack *ack,
			   const struct vmmc_notification *n)
{
	long bad = -1;
	uint32_t expected = (uint32_t)ack->messages;

	if (EXPECT(n->immediate == expected && n->count == 1 &&
			   n->offset == expected % STREAM_SLOTS * STREAM_SLOT &&
			   n->length <= STREAM_SLOT,
		   "stream: message %u of %u bytes at %llu, count %u; expected "
		   "message %u",
		   n->immediate, n->length, (unsigned long long)n->offset,
		   n->count, expected)) {
		bad = pattern_check(g->buffer + n->offset, n->length,
				    n->immediate);
		EXPECT(bad < 0, "stream: message %u wrong at byte %ld of %u",
		       n->immediate, bad, n->length);
	}
	ack->bad += bad >= 0;
	ack->messages++;
	verified_messages++;
}

/* Serves one victim after another. */
static void *serve_stream(void *unused)
{
	vmmc_t *v = open_card();
	struct guarded *g = offer(v, STREAM_SLOTS * STREAM_SLOT, NAME_STREAM,
				  VMMC_EXPORT_NOTIFY, NULL);
	vmmc_import_t *back = NULL;
	static struct ack ack;

	(void)unused;
	while (!quitting) {
		struct vmmc_notification n;
		int got = vmmc_wait(v, &n, 100);
		int error;

		if (!EXPECT(got >= 0, "stream: wait: %s", vmmc_strerror(got)))
			break;
		if (!got || n.type != VMMC_MESSAGE)
			continue;
		if (!back) {
			error = vmmc_import(v, n.source_node, NAME_ACK, 5000,
					    NULL, &back);
			if (!EXPECT(!error, "import of acknowledgements: %s",
				    vmmc_strerror(error)))
				break;
			memset(&ack, 0, sizeof(ack));
		}
		if (n.immediate == STREAM_END) {
			vmmc_unimport(back);
			back = NULL;
			guarded_intact(g, "stream");
			continue;
		}
		stream_message(g, &ack, &n);
		error = vmmc_send(back, 0, &ack, sizeof(ack), 0, 0);
		EXPECT(!error, "acknowledgement: %s", vmmc_strerror(error));
		if (ack.messages % 64 == 0)
			guarded_intact(g, "stream");
	}
	guarded_intact(g, "stream");
	vmmc_close(v);
	return NULL;
}

/* ---- verification on request ---- */

static void check_range(const struct guarded *g, const struct order *o,
			struct verdict *verdict)
{
	size_t begin = o->offset < PAGE ? 0 : o->offset - PAGE;
	size_t end = o->offset + o->length;
	size_t after = CHECK_SIZE - end < PAGE ? CHECK_SIZE - end : PAGE;
	long wrong = pattern_check(g->buffer + o->offset, o->length, o->seed);
	long before =
		first_other(g->buffer + begin, o->offset - begin, CHECK_FILL);
	long behind = first_other(g->buffer + end, after, CHECK_FILL);

	/* Not a failure of ours: who asked reports it, and may have meant it.
	 */
	if (wrong >= 0 || before >= 0 || behind >= 0)
		tap_note("check: %llu bytes at %llu: wrong at %ld, "
			 "before %ld, after %ld",
			 (unsigned long long)o->length,
			 (unsigned long long)o->offset, wrong, before, behind);
	*verdict = (struct verdict){
		.seed = (uint32_t)o->seed,
		.ok = wrong < 0 && before < 0 && behind < 0,
		.offset = o->offset,
		.length = o->length,
	};
	memset(g->buffer + begin, CHECK_FILL, end + after - begin);
	checked_messages++;
}

/* A message is an order to look at itself, or contains one. */
static void check_message(const struct guarded *g,
			  const struct vmmc_notification *n,
			  struct verdict *verdict)
{
	struct order o = { n->offset, n->length, n->immediate };

	if (n->immediate == CHECK_ORDER && n->offset == CHECK_SIZE &&
	    n->length == sizeof(o))
		memcpy(&o, g->buffer + CHECK_SIZE, sizeof(o));
	if (o.offset > CHECK_SIZE || o.length > CHECK_SIZE - o.offset) {
		*verdict = (struct verdict){ .seed = (uint32_t)o.seed };
		return;
	}
	check_range(g, &o, verdict);
	verdict->ok &= n->count == 1;
}

static void *serve_checks(void *unused)
{
	vmmc_t *v = open_card();
	struct guarded *g = offer(v, CHECK_SIZE + PAGE, NAME_CHECK,
				  VMMC_EXPORT_NOTIFY, NULL);
	vmmc_import_t *back = NULL;
	static struct verdict verdict;

	(void)unused;
	while (!quitting) {
		struct vmmc_notification n;
		int got = vmmc_wait(v, &n, 100);
		int error;

		if (!EXPECT(got >= 0, "check: wait: %s", vmmc_strerror(got)))
			break;
		if (!got || n.type != VMMC_MESSAGE)
			continue;
		if (n.immediate == CHECK_QUIT) {
			quitting = true;
			break;
		}
		if (n.immediate == CHECK_HELLO && back) {
			vmmc_unimport(back);
			back = NULL;
		}
		if (!back) {
			error = vmmc_import(v, n.source_node, NAME_VERDICT,
					    5000, NULL, &back);
			if (!EXPECT(!error, "import of verdicts: %s",
				    vmmc_strerror(error)))
				continue;
		}
		if (n.immediate == CHECK_HELLO)
			verdict = (struct verdict){ .seed = CHECK_HELLO,
						    .ok = 1 };
		else
			check_message(g, &n, &verdict);
		/* The asker may have gone meanwhile; that is its right. */
		vmmc_send(back, 0, &verdict, sizeof(verdict), VMMC_SEND_NOTIFY,
			  verdict.seed);
	}
	guarded_intact(g, "check");
	vmmc_close(v);
	return NULL;
}

/* ---- an export that comes and goes ---- */

static void *serve_flicker(void *unused)
{
	vmmc_t *v = open_card();
	struct guarded g;

	(void)unused;
	if (!guarded_make(&g, SANDBOX_SIZE, 99, NULL))
		tap_bail("no memory");
	while (!quitting) {
		vmmc_export_t *e;
		long touched;
		int error;

		error = vmmc_export(v, g.buffer, g.size, NAME_FLICKER, 0, NULL,
				    &e);
		if (!EXPECT(!error, "flicker: export: %s",
			    vmmc_strerror(error)))
			break;
		sleep_ms(30);
		error = vmmc_unexport(e);
		EXPECT(!error, "flicker: unexport: %s", vmmc_strerror(error));
		/* From here on nothing may arrive. */
		memset(g.buffer, CHECK_FILL, g.size);
		sleep_ms(30);
		touched = first_other(g.buffer, g.size, CHECK_FILL);
		EXPECT(touched < 0, "flicker: byte %ld written after unexport",
		       touched);
		guarded_intact(&g, "flicker");
		flickers++;
	}
	vmmc_close(v);
	return NULL;
}

static void for_node1_only(struct raw *r, void *buffer)
{
	struct prawn_export e = { .address = (uintptr_t)buffer,
				  .length = PAGE,
				  .node_mask = 1u << PEER_NODE,
				  .name = NAME_NODE1 };
	int error;

	raw_start(r, 4);
	error = raw_ioctl(r->fd, PRAWN_IOC_EXPORT, &e);
	if (error)
		tap_bail("export: %s", strerror(-error));
}

static void body(void)
{
	static void *(*const services[])(void *) = { serve_stream, serve_checks,
						     serve_flicker };
	enum { SERVICES = sizeof(services) / sizeof(*services) };
	pthread_t thread[SERVICES];
	vmmc_t *v = open_card();
	struct raw raw;
	struct guarded *sandbox = offer(v, SANDBOX_SIZE, NAME_SANDBOX, 0, NULL);
	struct guarded *secret = offer(v, SANDBOX_SIZE, NAME_SECRET, 0, NULL);
	struct guarded *other[] = {
		offer(v, PAGE, NAME_UID0, VMMC_EXPORT_SAME_USER, NULL),
		offer(v, PAGE, NAME_GID0, VMMC_EXPORT_SAME_GROUP, NULL),
	};

	for_node1_only(&raw, pages(PAGE));
	for (int i = 0; i < SERVICES; i++)
		if (pthread_create(&thread[i], NULL, services[i], NULL))
			tap_bail("no thread");
	for (int i = 0; i < SERVICES; i++)
		pthread_join(thread[i], NULL);
	guarded_intact(sandbox, "sandbox");
	guarded_intact(secret, "secret");
	EXPECT(first_other(secret->buffer, secret->size, CHECK_FILL) < 0,
	       "somebody wrote to the secret");
	for (int i = 0; i < 2; i++)
		guarded_intact(other[i], "restricted export");
	raw_close(&raw);
	vmmc_close(v);
	tap_note("%lu stream messages, %lu checks, %lu withdrawals",
		 verified_messages, checked_messages, flickers);
}

int main(void)
{
	tap_run("the peer's buffers hold what was sent and nothing else", body);
	return tap_end();
}
