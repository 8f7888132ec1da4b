// SPDX-License-Identifier: Apache-2.0
/*
 * vmmc_lat - one-way latency between two processes on two nodes.
 *
 * Wall clock: half of a round trip as the client sees it. Model time: doorbell
 * accepted by the client's card to last byte in the server's memory, from the
 * card's clock. Every message is checked by its receiver after its time has
 * been taken; the next one starts only then.
 */
#include <stdlib.h>

#include "session.h"

static size_t check_target(const struct session *s, size_t size, uint64_t round)
{
	if (!s->o->verify)
		return 0;
	return pattern_check(s->target, size,
			     pattern_seed(size, round, 0, !s->o->server));
}

static void fill_source(const struct session *s, size_t size, uint64_t round)
{
	pattern_fill(s->source, size,
		     pattern_seed(size, round, 0, s->o->server));
}

static void send_data(struct session *s, size_t size, uint32_t immediate,
		      struct vmmc_completion *c)
{
	vmmc_request_t request;
	int error = vmmc_isend(s->remote, 0, s->source, size, VMMC_SEND_NOTIFY,
			       immediate, &request);

	if (!error)
		error = vmmc_complete(s->v, request, c, s->o->timeout_ms);
	if (!error)
		fail("a send did not finish within %d s",
		     s->o->timeout_ms / 1000);
	if (error > 0)
		error = c->error;
	if (error < 0)
		fail("send of %zu bytes: %s", size, vmmc_strerror(error));
}

static bool serve(struct session *s)
{
	struct vmmc_completion c;
	bool ok = true;

	for (;;) {
		struct control m = control_wait(s, 0);

		if (m.op == OP_END) {
			ok = ok && m.a;
			break;
		}
		if (m.op != OP_PREPARE)
			fail("protocol error: message %u", m.op);
		data_close(s);
		data_open(s, m.a);
		data_import(s, m.node, m.name);
		fill_source(s, m.a, 0);
		control_send(s, OP_PREPARED, 0, 0, 0, s->data_name);
		for (uint64_t i = 0; i < m.b; i++) {
			struct vmmc_notification n = data_wait(s, (uint32_t)i);
			size_t bad;

			send_data(s, m.a, (uint32_t)i, &c);
			bad = check_target(s, m.a, i);
			if (n.length != m.a)
				bad = m.a ? m.a : 1;
			ok = ok && !bad;
			fill_source(s, m.a, i + 1);
			control_send(s, OP_READY, n.delivered_ps, bad,
				     s->o->verify, NULL);
		}
	}
	return ok;
}

static bool measure(struct session *s, size_t size, struct row *r)
{
	unsigned long n = s->o->iterations;
	double *wall = calloc(n, sizeof(*wall));
	double *model = calloc(n, sizeof(*model));
	struct control m;
	bool looked = s->o->verify;
	size_t bad = 0;

	if (!wall || !model)
		fail("no memory for %lu samples: use fewer iterations", n);
	data_close(s);
	data_open(s, size);
	control_send(s, OP_PREPARE, size, n, 0, s->data_name);
	m = control_wait(s, OP_PREPARED);
	data_import(s, s->o->peer, m.name);
	for (unsigned long i = 0; i < n; i++) {
		struct vmmc_completion c;
		struct vmmc_notification a;
		uint64_t t;

		fill_source(s, size, i);
		t = wall_ns();
		send_data(s, size, (uint32_t)i, &c);
		a = data_wait(s, (uint32_t)i);
		wall[i] = (double)(wall_ns() - t) / 2;
		bad += check_target(s, size, i);
		if (a.length != size)
			bad++;
		m = control_wait(s, OP_READY);
		bad += m.b;
		looked = looked && m.c;
		model[i] = (double)(m.a - c.accepted_ps) / 1e3;
	}
	*r = (struct row){
		.tool = s->o->tool,
		.bytes = size,
		.iterations = n,
		.verified = looked && !bad,
		.has_ns = true,
		.wall_ns = figures_of(wall, n),
		.model_ns = figures_of(model, n),
		.model_MBps = -1,
		.wall_MBps = -1,
	};
	free(wall);
	free(model);
	return !bad;
}

int main(int argc, char **argv)
{
	static const struct tool tool = {
		.defaults = {
			.tool = "vmmc_lat",
			.summary = "One-way latency of deliberate update, with notification.",
			.size = 4,
			.all_from = 4,
			.all_to = 65536,
			.size_max = 1 << 22,
			.iterations = 1000,
		},
		.serve = serve,
		.measure = measure,
	};

	return run_tool(&tool, argc, argv);
}
