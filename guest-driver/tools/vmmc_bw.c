// SPDX-License-Identifier: Apache-2.0
/*
 * vmmc_bw - bandwidth from one process to another on another node.
 *
 * Messages go in batches: as many as fit into the buffers are under way at a
 * time. Then the server says that the batch has arrived (end of the timed
 * window), checks every byte of it, and lets the next one start. Wall clock:
 * first send to the server's word. Model time: first doorbell accepted by the
 * client's card to last byte in the server's memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "session.h"

#define WINDOW_BYTES ((size_t)16 << 20)
#define WINDOW_SLOTS 256
#define SIZE_LIMIT ((size_t)1 << 28)

static size_t stride_of(size_t size)
{
	return size ? (size + 63) & ~(size_t)63 : 64;
}

/* Source and target of a batch are pinned: keep clear of RLIMIT_MEMLOCK. */
static unsigned long slots_for(const struct options *o, size_t size)
{
	size_t window = WINDOW_BYTES;
	unsigned long slots;
	struct rlimit l;

	if (!getrlimit(RLIMIT_MEMLOCK, &l) && l.rlim_cur != RLIM_INFINITY &&
	    l.rlim_cur * 3 / 8 < window)
		window = l.rlim_cur * 3 / 8;
	slots = window / stride_of(size);
	if (slots > WINDOW_SLOTS)
		slots = WINDOW_SLOTS;
	if (slots > o->iterations)
		slots = o->iterations;
	return slots ? slots : 1;
}

static bool serve(struct session *s)
{
	bool ok = true;

	for (;;) {
		struct control m = control_wait(s, 0);
		size_t stride;

		if (m.op == OP_END) {
			ok = ok && m.a;
			break;
		}
		if (m.op != OP_PREPARE)
			fail("protocol error: message %u", m.op);
		if (m.a > SIZE_LIMIT || !m.c || m.c > WINDOW_SLOTS)
			fail("protocol error: %llu messages of %llu bytes",
			     (unsigned long long)m.c, (unsigned long long)m.a);
		stride = stride_of(m.a);
		data_close(s);
		data_open(s, stride * m.c);
		control_send(s, OP_PREPARED, 0, 0, 0, s->data_name);
		for (uint64_t done = 0, batch = 0; done < m.b; batch++) {
			uint64_t n = m.b - done < m.c ? m.b - done : m.c;
			struct vmmc_notification a;
			uint64_t bad = 0;

			a = data_wait(s, (uint32_t)batch);
			control_send(s, OP_ARRIVED, a.delivered_ps, 0, 0, NULL);
			for (uint64_t i = 0; s->o->verify && i < n; i++)
				bad += pattern_check(
					s->target + i * stride, m.a,
					pattern_seed(m.a, batch, i, false));
			ok = ok && !bad;
			control_wait(s, OP_ARRIVED);
			control_send(s, OP_READY, 0, bad, s->o->verify, NULL);
			done += n;
		}
	}
	return ok;
}

static void reap(struct session *s, vmmc_request_t request,
		 struct vmmc_completion *c)
{
	int got = vmmc_complete(s->v, request, c, s->o->timeout_ms);

	if (!got)
		fail("a send did not finish within %d s",
		     s->o->timeout_ms / 1000);
	if (got > 0)
		got = c->error;
	if (got < 0)
		fail("send: %s", vmmc_strerror(got));
}

/* One batch; returns wall ns and sets *model to ps. */
static uint64_t run_batch(struct session *s, size_t size, uint64_t batch,
			  unsigned long n, uint64_t *model)
{
	static vmmc_request_t request[WINDOW_SLOTS];
	size_t stride = stride_of(size);
	struct vmmc_completion c;
	uint64_t accepted = 0;
	unsigned long reaped = 0;
	struct control m;
	uint64_t t;

	for (unsigned long i = 0; i < n; i++)
		pattern_fill(s->source + i * stride, size,
			     pattern_seed(size, batch, i, false));
	t = wall_ns();
	for (unsigned long i = 0; i < n; i++) {
		unsigned int flags = i + 1 == n ? VMMC_SEND_NOTIFY : 0;
		int error;

		while ((error = vmmc_isend(s->remote, i * stride,
					   s->source + i * stride, size, flags,
					   (uint32_t)batch, &request[i])) ==
			       -EAGAIN &&
		       reaped < i) {
			reap(s, request[reaped], &c);
			if (!reaped++)
				accepted = c.accepted_ps;
		}
		if (error)
			fail("send of %zu bytes: %s", size,
			     vmmc_strerror(error));
	}
	while (reaped < n) {
		reap(s, request[reaped], &c);
		if (!reaped++)
			accepted = c.accepted_ps;
	}
	m = control_wait(s, OP_ARRIVED);
	t = wall_ns() - t;
	*model = m.a - accepted;
	return t;
}

static bool measure(struct session *s, size_t size, struct row *r)
{
	unsigned long total = s->o->iterations;
	unsigned long slots = slots_for(s->o, size);
	double wall_s = 0, model_s = 0;
	bool looked = s->o->verify;
	uint64_t bad = 0;
	struct control m;

	data_close(s);
	data_open(s, stride_of(size) * slots);
	control_send(s, OP_PREPARE, size, total, slots, NULL);
	m = control_wait(s, OP_PREPARED);
	data_import(s, s->o->peer, m.name);
	for (uint64_t done = 0, batch = 0; done < total; batch++) {
		unsigned long n = total - done < slots ? total - done : slots;
		uint64_t model;

		wall_s += (double)run_batch(s, size, batch, n, &model) / 1e9;
		model_s += (double)model / 1e12;
		control_send(s, OP_ARRIVED, 0, 0, 0, NULL);
		m = control_wait(s, OP_READY);
		bad += m.b;
		looked = looked && m.c;
		done += n;
	}
	*r = (struct row){
		.tool = s->o->tool,
		.bytes = size,
		.iterations = total,
		.verified = looked && !bad,
		.model_MBps = (double)size * (double)total / model_s / 1e6,
		.wall_MBps = (double)size * (double)total / wall_s / 1e6,
	};
	return !bad;
}

int main(int argc, char **argv)
{
	static const struct tool tool = {
		.defaults = {
			.tool = "vmmc_bw",
			.summary = "Bandwidth of deliberate update, one direction.",
			.size = 65536,
			.all_from = 64,
			.all_to = 1 << 22,
			.size_max = SIZE_LIMIT,
			.iterations = 1000,
		},
		.serve = serve,
		.measure = measure,
	};

	return run_tool(&tool, argc, argv);
}
