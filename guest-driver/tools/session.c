// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

static void check(int error, const char *what, const char *name)
{
	if (error < 0)
		fail("%s %s: %s", what, name, vmmc_strerror(error));
}

static void *map(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		fail("cannot allocate %zu bytes: %s", length, strerror(errno));
	return p;
}

static size_t whole_pages(size_t bytes)
{
	return bytes ? (bytes + PAGE - 1) & ~(PAGE - 1) : PAGE;
}

void session_open(struct session *s, const struct options *o)
{
	int error;

	memset(s, 0, sizeof(*s));
	s->o = o;
	check(vmmc_open(o->device, 0, &s->v), "cannot open",
	      o->device ? o->device : "the card");
	vmmc_query(s->v, &s->info);
	s->page = map(PAGE);
	s->out = map(PAGE);
	if (o->server)
		snprintf(s->name, sizeof(s->name), "%s", o->service);
	else
		snprintf(s->name, sizeof(s->name), "%s.%u.%ld", o->service,
			 s->info.node, (long)getpid());
	error = vmmc_export(s->v, s->page, PAGE, s->name, VMMC_EXPORT_NOTIFY,
			    s->page, &s->control);
	check(error, "cannot export", s->name);

	if (o->server) {
		struct control hello;

		if (!o->quiet && !o->json)
			printf("%s: waiting on node %u\n", o->tool,
			       s->info.node);
		fflush(stdout);
		hello = control_wait(s, OP_HELLO);
		check(vmmc_import(s->v, hello.node, hello.name, o->timeout_ms,
				  &s->peer, &s->peer),
		      "cannot import", hello.name);
		control_send(s, OP_READY, 0, 0, 0, NULL);
		return;
	}
	/* The server may not be there yet. */
	for (uint64_t end = wall_ns() + (uint64_t)o->timeout_ms * 1000000u;;) {
		error = vmmc_import(s->v, o->peer, o->service, 1000, &s->peer,
				    &s->peer);
		if ((error != -ENOENT && error != -ETIMEDOUT) ||
		    wall_ns() > end)
			break;
		usleep(100000);
	}
	check(error, "no server: import of", o->service);
	control_send(s, OP_HELLO, 0, 0, 0, s->name);
	/* The page holds one message: the next only after this has been read.
	 */
	control_wait(s, OP_READY);
}

void session_close(struct session *s)
{
	data_close(s);
	if (s->peer)
		vmmc_unimport(s->peer);
	vmmc_unexport(s->control);
	vmmc_close(s->v);
	munmap(s->page, PAGE);
	munmap(s->out, PAGE);
}

void control_send(struct session *s, enum control_op op, uint64_t a, uint64_t b,
		  uint64_t c, const char *name)
{
	memset(s->out, 0, sizeof(*s->out));
	s->out->magic = CONTROL_MAGIC;
	s->out->op = op;
	s->out->node = s->info.node;
	s->out->a = a;
	s->out->b = b;
	s->out->c = c;
	if (name)
		snprintf(s->out->name, sizeof(s->out->name), "%s", name);
	check(vmmc_send(s->peer, 0, s->out, sizeof(*s->out), VMMC_SEND_NOTIFY,
			(uint32_t)op),
	      "cannot send to", "the peer");
}

static struct vmmc_notification next(struct session *s, void *object)
{
	struct vmmc_notification n;
	int timeout = s->o->timeout_ms;
	int got;

	/* A server waits for its client as long as it takes. */
	if (s->o->server && !s->peer)
		timeout = -1;
	do {
		got = vmmc_wait(s->v, &n, timeout);
		check(got, "waiting for", "the peer");
		if (!got)
			fail("the peer did not answer within %d s",
			     timeout / 1000);
		/* The peer goes on to its next size: a control message says so.
		 */
	} while (n.type == VMMC_IMPORT_LOST && n.object == &s->remote &&
		 object == s->page);
	if (n.type != VMMC_MESSAGE)
		fail("the peer has gone: %s", vmmc_strerror(n.error));
	if (n.object != object)
		fail("protocol error: message in the wrong buffer");
	return n;
}

struct control control_wait(struct session *s, enum control_op op)
{
	struct control c;

	next(s, s->page);
	memcpy(&c, s->page, sizeof(c));
	c.name[sizeof(c.name) - 1] = 0;
	if (c.magic != CONTROL_MAGIC)
		fail("protocol error: the peer is no %s", s->o->tool);
	if (op && c.op != op)
		fail("protocol error: got message %u instead of %u", c.op, op);
	return c;
}

struct vmmc_notification data_wait(struct session *s, uint32_t immediate)
{
	struct vmmc_notification n = next(s, s->target);

	if (n.immediate != immediate)
		fail("protocol error: got message %u instead of %u",
		     n.immediate, immediate);
	return n;
}

void data_open(struct session *s, size_t bytes)
{
	s->bytes = whole_pages(bytes);
	s->source = map(s->bytes);
	s->target = map(s->bytes);
	snprintf(s->data_name, sizeof(s->data_name), "%.40s.d%u", s->name,
		 s->data_count++);
	check(vmmc_export(s->v, s->target, s->bytes, s->data_name,
			  VMMC_EXPORT_NOTIFY, s->target, &s->data),
	      "cannot export", s->data_name);
	check(vmmc_pin(s->v, s->source, s->bytes), "cannot pin", "the source");
}

void data_import(struct session *s, unsigned int node, const char *name)
{
	check(vmmc_import(s->v, node, name, s->o->timeout_ms, &s->remote,
			  &s->remote),
	      "cannot import", name);
}

void data_close(struct session *s)
{
	if (s->remote)
		vmmc_unimport(s->remote);
	if (s->data)
		vmmc_unexport(s->data);
	if (s->source) {
		vmmc_unpin(s->v, s->source, s->bytes);
		munmap(s->source, s->bytes);
		munmap(s->target, s->bytes);
	}
	s->remote = NULL;
	s->data = NULL;
	s->source = NULL;
	s->target = NULL;
}

int run_tool(const struct tool *tool, int argc, char **argv)
{
	struct row row[SIZES_MAX];
	struct options o;
	struct session s;
	size_t rows = 0;
	bool ok = true;

	parse_options(&o, &tool->defaults, argc, argv);
	session_open(&s, &o);
	if (o.server) {
		ok = tool->serve(&s);
	} else {
		for (; rows < o.sizes; rows++)
			ok = tool->measure(&s, o.size[rows], &row[rows]) && ok;
		control_send(&s, OP_END, ok, 0, 0, NULL);
	}
	print_rows(stdout, &o, s.info.node, row, rows, ok);
	session_close(&s);
	if (!ok)
		fail("data arrived wrong");
	return 0;
}
