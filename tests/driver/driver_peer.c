// SPDX-License-Identifier: Apache-2.0
/*
 * Two drivers: rendezvous, withdrawal, and a peer that goes away and comes
 * back. Runs on both nodes, as root; node 1 does what node 0 asks for by the
 * immediate of an empty message, node 0 judges.
 */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "tap.h"

enum order { KILL = 1, REBIND, RESET, QUIT };

static char function[256];

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		tap_bail("%s: %s", path, strerror(errno));
	close(fd);
}

static void find_function(void)
{
	DIR *d = opendir("/sys/bus/pci/drivers/prawn");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strchr(e->d_name, ':'))
			snprintf(function, sizeof(function), "%s", e->d_name);
	if (d)
		closedir(d);
}

static void open_again(struct raw *r)
{
	for (int i = 0; i < 500; i++) {
		if (!raw_open(r))
			break;
		sleep_ms(20);
	}
	if (raw_setup(r, 4))
		tap_bail("no context");
}

static unsigned char *pages(unsigned n)
{
	unsigned char *p = mmap(NULL, n * RAW_PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, n * RAW_PAGE);
	return p;
}

/* ------------------------------------------------------- node 1: server -- */

/* A process with an export that only its death takes back. */
static pid_t victim(void)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	if (pipe(ready))
		tap_bail("pipe");
	pid = fork();
	if (!pid) {
		struct raw r;
		uint32_t id;

		raw_start(&r, 4);
		if (raw_export(&r, pages(1), RAW_PAGE, "peer.victim", 0, &id))
			tap_bail("victim's export");
		(void)!write(ready[1], &c, 1);
		for (;;)
			pause();
	}
	(void)!read(ready[0], &c, 1);
	close(ready[0]), close(ready[1]);
	return pid;
}

static enum order next_order(struct raw *r)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_NOTIFICATION,
				   .notification_seen = r->noticed,
				   .timeout_ns = 120000000000ull };
	int error = raw_ioctl(r->fd, PRAWN_IOC_WAIT, &wait);
	uint32_t immediate;

	if (error)
		tap_bail("no order: %s", strerror(-error));
	immediate = r->notification[r->noticed % r->size].immediate;
	r->noticed++;
	r->doorbell[PRAWN_DOORBELL_NOTIFY_CONSUMED / 8] = r->noticed;
	return immediate;
}

static int serve(void)
{
	unsigned char *p = pages(1);
	enum order order = 0;
	pid_t pid = victim();

	while (order != QUIT) {
		struct raw r;
		uint32_t id;

		open_again(&r);
		if (raw_export(&r, p, RAW_PAGE, "peer.orders",
			       PRAWN_EXPORT_NOTIFY, &id))
			tap_bail("export of the orders");
		order = next_order(&r);
		while (order == KILL) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			order = next_order(&r);
		}
		if (order == REBIND) {
			put("/sys/bus/pci/drivers/prawn/unbind", function);
			sleep_ms(500);
			put("/sys/bus/pci/drivers/prawn/bind", function);
		}
		if (order == RESET) {
			char path[320];

			snprintf(path, sizeof(path),
				 "/sys/bus/pci/devices/%s/reset", function);
			put(path, "1");
		}
		raw_close(&r);
	}
	return 0;
}

/* -------------------------------------------------------- node 0: judge -- */

static struct raw r;
static uint32_t orders;
static unsigned char *source;

static void find_orders(void)
{
	uint64_t length = 0;

	EXPECT_EQ(raw_import(&r, 1, "peer.orders", 60000, &orders, &length), 0);
	EXPECT_EQ(length, RAW_PAGE);
}

static unsigned say(enum order order)
{
	struct prawn_command c = raw_send(orders, 0, source, 8);

	c.flags = PRAWN_COMMAND_FLAG_NOTIFY;
	c.immediate = order;
	return raw_status(&r, &c);
}

static void expect_event(uint32_t kind, uint32_t id)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT,
				   .timeout_ns = 60000000000ull };
	struct prawn_event event;

	if (!EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), 0) ||
	    !EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENT, &event), 0))
		return;
	EXPECT_EQ(event.kind, kind);
	EXPECT_EQ(event.id, id);
}

static void refusals(void)
{
	struct prawn_import import = { .node = 1, .name = "peer.nobody" };
	uint64_t begin = now_ms();

	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_IMPORT, &import), -ENOENT);
	import.timeout_ms = 500;
	begin = now_ms();
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_IMPORT, &import), -ENOENT);
	EXPECT(now_ms() - begin >= 400, "gave up after %llu of 500 ms",
	       (unsigned long long)(now_ms() - begin));
	import.node = r.query.nodes;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_IMPORT, &import), -EINVAL);
	EXPECT_EQ(raw_unimport(&r, orders + 1), -ENOENT);
}

static void killed(void)
{
	struct prawn_command c;
	uint64_t length;
	uint32_t id, other;
	unsigned status;

	EXPECT_EQ(raw_import(&r, 1, "peer.victim", 60000, &id, &length), 0);
	c = raw_send(id, 0, source, 100);
	EXPECT_EQ(raw_status(&r, &c), PRAWN_STATUS_OK);
	EXPECT_EQ(say(KILL), PRAWN_STATUS_OK);
	expect_event(PRAWN_EVENT_IMPORT_WITHDRAWN, id);
	status = raw_status(&r, &c);
	EXPECT(status == PRAWN_STATUS_BAD_IMPORT ||
		       status == PRAWN_STATUS_IMPORT_ERROR,
	       "status %u", status);
	EXPECT_EQ(raw_import(&r, 1, "peer.victim", 0, &other, &length),
		  -ENOENT);
	EXPECT_EQ(raw_unimport(&r, id), 0);
}

/* The peer's card starts a new life: the old import is of no use for good. */
static void peer_restarts(enum order how)
{
	uint32_t old = orders;
	struct prawn_command c = raw_send(old, 0, source, 8);
	unsigned status;

	EXPECT_EQ(say(how), PRAWN_STATUS_OK);
	expect_event(PRAWN_EVENT_IMPORT_PEER_DOWN, old);
	status = raw_status(&r, &c);
	EXPECT(status == PRAWN_STATUS_IMPORT_ERROR ||
		       status == PRAWN_STATUS_UNKNOWN_OUTCOME ||
		       status == PRAWN_STATUS_BAD_IMPORT,
	       "status %u", status);
	find_orders();
	status = raw_status(&r, &c);
	EXPECT(status != PRAWN_STATUS_OK, "the old import came back to life");
	EXPECT_EQ(raw_unimport(&r, old), 0);
}

static void rebound(void)
{
	peer_restarts(REBIND);
}

static void reset(void)
{
	peer_restarts(RESET);
}

static int judge(void)
{
	source = pages(1);
	open_again(&r);
	if (raw_pin(&r, source, RAW_PAGE))
		tap_bail("pin");
	tap_run("import of another node's export", find_orders);
	tap_run("imports that are refused", refusals);
	tap_run("kill -9 of the exporter", killed);
	tap_run("the other driver is unbound and bound", rebound);
	tap_run("the other card is reset", reset);
	say(QUIT);
	raw_close(&r);
	return tap_end();
}

int main(void)
{
	struct raw first;
	unsigned node;

	if (geteuid())
		tap_bail("needs root");
	find_function();
	if (raw_open(&first))
		tap_bail("no card");
	node = first.query.node;
	raw_close(&first);
	if (node > 1)
		return 0;
	return node ? serve() : judge();
}
