// SPDX-License-Identifier: Apache-2.0
/*
 * Two more cards in one guest, which talk to each other. Then two others vanish
 * while everything waits for them, as cards do that are pulled out (who serves
 * them makes it so when he reads the line TAKE_AWAY): every process that waits
 * is told, none hangs, and the rest of the machine goes on. Needs root.
 *
 * usage: driver_vanish SLOT SLOT VANISHING VANISHING OTHER
 *        (slots as in 0000:00:SLOT.0)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "lib_scene.h"
#include "ptp_device.h"

#define TAKE_AWAY "# take the cards away"

enum { SIZE = 1 << 20, PATIENCE_MS = 60000 };

struct card {
	const char *slot;
	char device[64];
	unsigned node;
};

static struct card a, b, other;
static struct card gone;	    /* everything is going on there */
static struct card quiet;	    /* and here nothing: processes sleep */
static struct ptp_device its_clock; /* of gone */

/* /dev/prawnN of a slot; false if no driver has it. */
static bool find(struct card *c, const char *slot)
{
	char path[128];
	struct dirent *e;
	DIR *d;

	c->slot = slot;
	c->device[0] = 0;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/0000:00:%s.0/prawn",
		 slot);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "prawn", 5))
			snprintf(c->device, sizeof(c->device), "/dev/%.32s",
				 e->d_name);
	if (d)
		closedir(d);
	return c->device[0];
}

static vmmc_t *open_card(struct card *c)
{
	struct vmmc_info info;
	vmmc_t *v = NULL;
	int error = vmmc_open(c->device, 0, &v);

	if (error)
		tap_bail("%s: %s", c->device, vmmc_strerror(error));
	vmmc_query(v, &info);
	c->node = info.node;
	return v;
}

static void transfer(struct card *from, struct card *to)
{
	vmmc_t *out = open_card(from), *in = open_card(to);
	unsigned char *source = pages(SIZE), *target = pages(SIZE);
	struct vmmc_notification n;
	vmmc_export_t *e;
	vmmc_import_t *i;

	pattern_fill(source, SIZE, 5);
	if (EXPECT_OK(vmmc_export(in, target, SIZE, "vanish.two",
				  VMMC_EXPORT_NOTIFY, &n, &e)) &&
	    EXPECT_OK(vmmc_import(out, to->node, "vanish.two", 10000, NULL,
				  &i)) &&
	    EXPECT_OK(vmmc_send(i, 0, source, SIZE, VMMC_SEND_NOTIFY, 5)) &&
	    EXPECT_EQ(vmmc_wait(in, &n, 30000), 1)) {
		EXPECT_EQ(n.source_node, from->node);
		EXPECT_EQ(pattern_check(target, SIZE, 5), -1);
	}
	vmmc_close(out);
	vmmc_close(in);
	munmap(source, SIZE);
	munmap(target, SIZE);
}

static void two_cards(void)
{
	transfer(&a, &b);
	transfer(&b, &a);
	EXPECT(a.node != b.node, "both are node %u", a.node);
	/* Nor do the nodes of another fabric know their names. */
	transfer(&other, &other);
}

static void two_clocks(void)
{
	const int64_t second = 1000000000, later = 1000000000 * second;
	struct ptp_device of_a = { .fd = -1 }, of_b = { .fd = -1 };
	int64_t before, now;

	if (EXPECT_EQ(ptp_open(&of_a, a.device, O_RDWR), 0) &&
	    EXPECT_EQ(ptp_open(&of_b, b.device, O_RDWR), 0)) {
		EXPECT(of_a.index != of_b.index, "both are ptp%u", of_a.index);
		EXPECT_EQ(ptp_read(&of_b, &before), 0);
		EXPECT_EQ(ptp_set(&of_a, later), 0);
		EXPECT_EQ(ptp_read(&of_b, &now), 0);
		EXPECT(now > before && now < later, "%lld after %lld",
		       (long long)now, (long long)before);
		EXPECT_EQ(ptp_read(&of_a, &now), 0);
		EXPECT(now >= later && now < later + 1000 * second, "%lld",
		       (long long)now);
	}
	ptp_close(&of_a);
	ptp_close(&of_b);
}

/* ---- processes that wait, each for another thing; their error ------------ */

enum { PEER = 1 }; /* has any export but vanish.never, takes nothing */

static int ready;

static void begin(void)
{
	if (write(ready, "x", 1) != 1)
		_exit(99);
}

static int until_notified(void)
{
	vmmc_t *v = open_card(&quiet);
	struct vmmc_notification n;

	begin();
	return vmmc_wait(v, &n, -1);
}

static int until_readable(void)
{
	vmmc_t *v = open_card(&quiet);
	struct pollfd fd = { .fd = vmmc_notify_fd(v), .events = POLLIN };
	struct vmmc_notification n;
	uint64_t count;
	int got = 0;

	begin();
	while (!got && poll(&fd, 1, -1) == 1) {
		(void)!read(fd.fd, &count, sizeof(count));
		got = vmmc_wait(v, &n, 0);
		if (!got)
			sleep_ms(10); /* it interrupts who arms, always */
		if (!got)
			vmmc_rearm(v);
	}
	return got;
}

static int until_sent(void)
{
	unsigned char *source = pages(SIZE);
	vmmc_t *v = open_card(&gone);
	vmmc_import_t *i;
	int error = vmmc_import(v, PEER, "vanish.inbox", 10000, NULL, &i);

	begin();
	return error ? error : vmmc_send(i, 0, source, SIZE, 0, 0);
}

static int until_room(void)
{
	unsigned char *source = pages(PAGE);
	vmmc_t *v = open_card(&gone);
	vmmc_request_t request;
	vmmc_import_t *i;
	int error = vmmc_import(v, PEER, "vanish.inbox", 10000, NULL, &i);

	while (!error)
		error = vmmc_isend(i, 0, source, PAGE, 0, 0, &request);
	begin();
	return error == -EAGAIN ? vmmc_send(i, 0, source, PAGE, 0, 0) : error;
}

static int until_found(void)
{
	vmmc_t *v = open_card(&gone);
	vmmc_import_t *i;

	begin();
	return vmmc_import(v, PEER, "vanish.never", -1, NULL, &i);
}

static int until_exported(void)
{
	unsigned char *p = pages(SIZE);
	vmmc_t *v = open_card(&gone);
	vmmc_export_t *e;
	int error = 0;

	begin();
	while (!error) {
		error = vmmc_export(v, p, SIZE, "vanish.flicker", 0, NULL, &e);
		if (!error)
			error = vmmc_unexport(e);
	}
	return error;
}

/* Pins that go by munmap: the kernel's own wait for the card. */
static int until_pinned(void)
{
	vmmc_t *v = open_card(&gone);
	int error = 0;

	begin();
	while (!error) {
		unsigned char *p = pages(SIZE);

		error = vmmc_pin(v, p, SIZE);
		vmmc_unpin(v, p, PAGE);
		munmap(p, SIZE);
	}
	return error;
}

/* Waits for nothing; to be killed. */
static int sleep_on(void)
{
	vmmc_t *v = open_card(&gone);
	vmmc_export_t *e;

	if (vmmc_export(v, pages(SIZE), SIZE, "vanish.inbox", 0, NULL, &e))
		_exit(99);
	begin();
	for (;;)
		pause();
}

static pid_t start(int (*body)(void))
{
	int ends[2];
	char c;
	pid_t pid;

	if (pipe(ends))
		tap_bail("pipe");
	pid = fork();
	if (!pid) {
		ready = ends[1];
		close(ends[0]);
		_exit(-body() & 0xff);
	}
	close(ends[1]);
	EXPECT(read(ends[0], &c, 1) == 1, "a process did not begin");
	close(ends[0]);
	return pid;
}

/* Its wait status, or -1 if it does not end. */
static int end_of(pid_t pid)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	int status;

	while (now_ms() < end) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		sleep_ms(20);
	}
	return -1;
}

static void show_stack(pid_t pid)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		tap_note("%.200s", strtok(line, "\n"));
	if (f)
		fclose(f);
}

static void vanished(void)
{
	static const struct {
		const char *what;
		int (*body)(void);
	} waiter[] = {
		{ "a wait for a notification", until_notified },
		{ "a wait on the eventfd", until_readable },
		{ "a send", until_sent },
		{ "a send into a full ring", until_room },
		{ "an import", until_found },
		{ "an export", until_exported },
		{ "a pin", until_pinned },
	};
	enum { WAITERS = sizeof(waiter) / sizeof(*waiter) };
	pid_t pid[WAITERS], sleeper = start(sleep_on);
	int64_t now;
	int status;

	EXPECT_EQ(ptp_open(&its_clock, gone.device, O_RDWR), 0);
	EXPECT_EQ(ptp_set(&its_clock, 5), 0);
	EXPECT_EQ(ptp_read(&its_clock, &now), 0);
	EXPECT_EQ(now, 5);
	for (unsigned i = 0; i < WAITERS; i++)
		pid[i] = start(waiter[i].body);
	sleep_ms(500);
	puts(TAKE_AWAY);
	fflush(stdout);
	for (unsigned i = 0; i < WAITERS; i++) {
		status = end_of(pid[i]);
		if (!EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == EIO,
			    "%s: wait status %#x, not exit %d", waiter[i].what,
			    status, EIO) &&
		    status == -1) {
			show_stack(pid[i]);
			kill(pid[i], SIGKILL);
		}
	}
	kill(sleeper, SIGKILL);
	status = end_of(sleeper);
	EXPECT(WIFSIGNALED(status), "kill -9: wait status %#x", status);
}

static void given_up(void)
{
	int64_t now;
	vmmc_t *v;

	EXPECT_EQ(ptp_read(&its_clock, &now), -ENODEV);
	EXPECT_EQ(ptp_set(&its_clock, 5), -ENODEV);
	EXPECT_EQ(ptp_adjust(&its_clock, 5), -ENODEV);
	EXPECT_EQ(ptp_steer(&its_clock, 5), -ENODEV);
	EXPECT_ERROR(vmmc_open(gone.device, 0, &v), -EIO);
	EXPECT_ERROR(vmmc_open(quiet.device, 0, &v), -EIO);
	transfer(&other, &other);
	transfer(&a, &b);
}

static int load(void)
{
	int fd = open("/lib/prawn/prawn.ko", O_RDONLY);
	int error = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;

	close(fd);
	return error;
}

static void unloaded(void)
{
	if (!EXPECT(!syscall(SYS_delete_module, "prawn", O_NONBLOCK),
		    "rmmod: %s", strerror(errno)) ||
	    !EXPECT_EQ(load(), 0))
		return;
	EXPECT(!find(&gone, gone.slot) && !find(&quiet, quiet.slot),
	       "a card that is not there has a driver");
	if (EXPECT(find(&a, a.slot) && find(&b, b.slot),
		   "the other cards have no driver"))
		transfer(&a, &b);
}

int main(int argc, char **argv)
{
	if (argc != 6 || geteuid())
		tap_bail("usage, as root: driver_vanish SLOT SLOT VANISHING "
			 "VANISHING OTHER");
	if (!find(&a, argv[1]) || !find(&b, argv[2]) || !find(&gone, argv[3]) ||
	    !find(&quiet, argv[4]) || !find(&other, argv[5]))
		tap_bail("no driver in one of the slots");
	tap_run("two cards in one guest", two_cards);
	tap_run("two cards have two clocks", two_clocks);
	tap_run("cards vanish", vanished);
	tap_run("they are given up, the others are not", given_up);
	tap_run("the module can be unloaded and loaded", unloaded);
	return tap_end();
}
