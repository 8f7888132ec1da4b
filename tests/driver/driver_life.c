// SPDX-License-Identifier: Apache-2.0
/*
 * The device comes and goes under open files: unbind and bind, reset, removal
 * from the bus and rescan, unloading of the module. Needs root, and the card to
 * itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "tap.h"

static char function[256]; /* as sysfs calls it: 0000:00:03.0 */
static sigjmp_buf escape;

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int error = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

static int poke(const char *what, const char *text)
{
	char path[320];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", function,
		 what);
	return put(path, text);
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
	if (!function[0])
		tap_bail("no card bound to prawn.ko");
}

/* The device node appears a moment after the bind. */
static int reopen(struct raw *r)
{
	int error = -ENOENT;

	for (int i = 0; i < 200; i++) {
		error = raw_open(r);
		if (error != -ENOENT && error != -ENXIO)
			break;
		sleep_ms(10);
	}
	return error ? error : raw_setup(r, 4);
}

static void works(struct raw *r)
{
	const struct prawn_command nop = { .opcode = PRAWN_OPCODE_NOP };

	EXPECT_EQ(raw_status(r, &nop), PRAWN_STATUS_OK);
}

static void on_bus_error(int number)
{
	(void)number;
	siglongjmp(escape, 1);
}

static bool faults(volatile const void *p)
{
	struct sigaction action = { .sa_handler = on_bus_error }, old;
	bool fault = true;

	sigaction(SIGBUS, &action, &old);
	if (!sigsetjmp(escape, 1)) {
		(void)*(volatile const char *)p;
		fault = false;
	}
	sigaction(SIGBUS, &old, NULL);
	return fault;
}

/* A child that has a context and does `body`; its status is the error. */
static pid_t child(int (*body)(struct raw *))
{
	int ready[2];
	char c = 0;
	pid_t pid;

	EXPECT_EQ(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		struct raw r;

		raw_start(&r, 4);
		(void)!write(ready[1], &c, 1);
		_exit(-body(&r));
	}
	(void)!read(ready[0], &c, 1);
	close(ready[0]), close(ready[1]);
	sleep_ms(200);
	return pid;
}

static int wait_for_ever(struct raw *r)
{
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT,
				   .timeout_ns = PRAWN_WAIT_FOREVER };

	return raw_ioctl(r->fd, PRAWN_IOC_WAIT, &wait);
}

static int import_for_ever(struct raw *r)
{
	uint64_t length;
	uint32_t id;

	return raw_import(r, r->query.node, "life.never", 0x7fffffff, &id,
			  &length);
}

static void ends_with(pid_t pid, int error)
{
	int status = -1;

	waitpid(pid, &status, 0);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == error,
	       "wait status %#x, not exit %d", status, error);
}

/* Gives the device away by `take` and back by `give`, with files in use. */
static void around(int (*take)(void), int (*give)(void), int error)
{
	struct prawn_query q;
	struct raw r, again;
	unsigned char *p;
	pid_t sleeper, seeker;
	uint32_t id;

	p = mmap(NULL, 8 * RAW_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, 8 * RAW_PAGE);
	if (!EXPECT_EQ(reopen(&r), 0))
		return;
	works(&r);
	EXPECT_EQ(raw_pin(&r, p, 4 * RAW_PAGE), 0);
	EXPECT_EQ(raw_export(&r, p + 4 * RAW_PAGE, RAW_PAGE, "life.export", 0,
			     &id),
		  0);
	sleeper = child(wait_for_ever);
	seeker = child(import_for_ever);

	EXPECT_EQ(take(), 0);
	ends_with(sleeper, error);
	ends_with(seeker, error);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_QUERY, &q), -error);
	EXPECT_EQ(raw_pin(&r, p, 1), -error);
	EXPECT(faults(r.command), "the command ring can still be read");
	EXPECT(faults(r.doorbell), "the doorbell page can still be read");
	munmap(p, 8 * RAW_PAGE); /* nothing hangs on it any more */

	EXPECT_EQ(give(), 0);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_QUERY, &q), -error);
	if (EXPECT_EQ(reopen(&again), 0)) {
		works(&again);
		raw_close(&again);
	}
	raw_close(&r);
}

static int unbind(void)
{
	return put("/sys/bus/pci/drivers/prawn/unbind", function);
}

static int bind(void)
{
	return put("/sys/bus/pci/drivers/prawn/bind", function);
}

static int take_out(void)
{
	return poke("remove", "1");
}

static int rescan(void)
{
	return put("/sys/bus/pci/rescan", "1");
}

static int reset(void)
{
	return poke("reset", "1");
}

static int nothing(void)
{
	return 0;
}

static void unbound(void)
{
	around(unbind, bind, ENODEV);
}

static void taken_out(void)
{
	around(take_out, rescan, ENODEV);
}

static void reset_in_use(void)
{
	char path[320];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", function);
	if (access(path, W_OK)) {
		tap_skip("the function cannot be reset from here");
		return;
	}
	around(reset, nothing, EIO);
}

static void many_times(void)
{
	struct raw r;

	for (int i = 0; i < 20; i++) {
		if (!EXPECT_EQ(unbind(), 0) || !EXPECT_EQ(bind(), 0) ||
		    !EXPECT_EQ(reopen(&r), 0))
			return;
		works(&r);
		raw_close(&r);
	}
}

/* Closes what it has when told so: by then its release is under way. */
static pid_t closer(int go)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	EXPECT_EQ(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		unsigned char *p =
			mmap(NULL, 8 * RAW_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char name[32];
		struct raw r;
		uint32_t id;

		memset(p, 1, 8 * RAW_PAGE);
		snprintf(name, sizeof(name), "life.%d", getpid());
		raw_start(&r, 4);
		if (raw_pin(&r, p, 4 * RAW_PAGE) ||
		    raw_export(&r, p + 4 * RAW_PAGE, RAW_PAGE, name, 0, &id))
			_exit(1);
		(void)!write(ready[1], &c, 1);
		(void)!read(go, &c, 1);
		_exit(0);
	}
	close(ready[1]);
	EXPECT(read(ready[0], &c, 1) == 1, "a process did not begin");
	close(ready[0]);
	return pid;
}

/* Whoever closes at that moment is done before the card is taken apart. */
static void closed_meanwhile(void (*take)(unsigned round))
{
	enum { ROUNDS = 15, CLOSERS = 6 };
	pid_t pid[CLOSERS];
	int go[2];

	for (unsigned i = 0; i < ROUNDS && !tap.case_failed; i++) {
		struct raw r;

		if (!EXPECT_EQ(reopen(&r), 0) || pipe(go))
			return;
		raw_close(&r);
		for (int k = 0; k < CLOSERS; k++)
			pid[k] = closer(go[0]);
		(void)!write(go[1], "xxxxxx", CLOSERS);
		take(i);
		for (int k = 0; k < CLOSERS; k++)
			ends_with(pid[k], 0);
		close(go[0]), close(go[1]);
	}
	/* Nothing of it is left to be in the way. */
	many_times();
}

static void take_by_unbinding(unsigned round)
{
	usleep(round * 300);
	EXPECT_EQ(unbind(), 0);
	EXPECT_EQ(bind(), 0);
}

static void unbound_while_closing(void)
{
	closed_meanwhile(take_by_unbinding);
}

static void take_by_reset(unsigned round)
{
	usleep(round * 300);
	EXPECT_EQ(reset(), 0);
}

static void reset_while_closing(void)
{
	closed_meanwhile(take_by_reset);
}

/* The module stays while a file is open, even without a device. */
static void unload_refused(void)
{
	struct raw r;

	if (!EXPECT_EQ(reopen(&r), 0))
		return;
	EXPECT_EQ(syscall(SYS_delete_module, "prawn", O_NONBLOCK), -1);
	EXPECT_EQ(errno, EWOULDBLOCK);
	works(&r);
	EXPECT_EQ(unbind(), 0);
	EXPECT_EQ(syscall(SYS_delete_module, "prawn", O_NONBLOCK), -1);
	raw_close(&r);
	EXPECT_EQ(bind(), 0);
}

static int load(void)
{
	int fd = open("/lib/prawn/prawn.ko", O_RDONLY);
	int error = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;

	close(fd);
	return error;
}

static void reloaded(void)
{
	struct raw r;

	for (int i = 0; i < 5; i++) {
		if (!EXPECT_EQ(syscall(SYS_delete_module, "prawn", O_NONBLOCK),
			       0) ||
		    !EXPECT_EQ(load(), 0) || !EXPECT_EQ(reopen(&r), 0))
			return;
		works(&r);
		raw_close(&r);
	}
}

int main(void)
{
	if (geteuid())
		tap_bail("needs root");
	find_function();
	tap_run("unbind and bind in use", unbound);
	tap_run("removal from the bus in use", taken_out);
	tap_run("reset in use", reset_in_use);
	tap_run("unbind and bind, many times", many_times);
	tap_run("unbind while files are closed", unbound_while_closing);
	tap_run("reset while files are closed", reset_while_closing);
	tap_run("unloading is refused while a file is open", unload_refused);
	tap_run("unload and load", reloaded);
	return tap_end();
}
