// SPDX-License-Identifier: Apache-2.0
/*
 * Who may export and import what: users, groups, nodes, names, memory; and
 * what is left of an endpoint in a forked child.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib_scene.h"

enum { ALICE = 5001, BOB = 5002, STAFF = 5100 };

static unsigned own_node;

/* Imports as somebody else; the error of the import. */
static int import_as(unsigned uid, unsigned gid, unsigned node,
		     const char *name)
{
	int pipe_fd[2], status = 0, error = -EIO;
	pid_t pid;

	if (pipe(pipe_fd))
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		vmmc_import_t *i;
		vmmc_t *v;

		if (uid)
			become(uid, gid);
		v = lib_open();
		error = vmmc_import(v, node, name, 2000, NULL, &i);
		if (!error)
			error = vmmc_send(i, 0, "12345678", 8, 0, 0);
		_exit(write(pipe_fd[1], &error, sizeof(error)) !=
		      sizeof(error));
	}
	close(pipe_fd[1]);
	if (read(pipe_fd[0], &error, sizeof(error)) != sizeof(error))
		FAIL("the child said nothing");
	close(pipe_fd[0]);
	waitpid(pid, &status, 0);
	EXPECT(status == 0, "child: status %#x", (unsigned)status);
	return error;
}

/* Exports in a child, because a process has one user; until it is killed. */
static pid_t exporter(unsigned uid, unsigned gid, const char *name,
		      unsigned flags)
{
	int pipe_fd[2];
	char byte;
	pid_t pid;

	if (pipe(pipe_fd))
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		vmmc_export_t *e;
		vmmc_t *v;

		become(uid, gid);
		v = lib_open();
		if (vmmc_export(v, pages(PAGE), PAGE, name, flags, NULL, &e) ||
		    write(pipe_fd[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipe_fd[1]);
	EXPECT(read(pipe_fd[0], &byte, 1) == 1, "no export");
	close(pipe_fd[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void users(void)
{
	pid_t pid =
		exporter(ALICE, STAFF, "access.user", VMMC_EXPORT_SAME_USER);

	EXPECT_ERROR(import_as(ALICE, STAFF, own_node, "access.user"), 0);
	EXPECT_ERROR(import_as(ALICE, 5101, own_node, "access.user"), 0);
	EXPECT_ERROR(import_as(BOB, STAFF, own_node, "access.user"), -EACCES);
	EXPECT_ERROR(import_as(0, 0, own_node, "access.user"), -EACCES);
	end(pid);
	pid = exporter(ALICE, STAFF, "access.group", VMMC_EXPORT_SAME_GROUP);
	EXPECT_ERROR(import_as(BOB, STAFF, own_node, "access.group"), 0);
	EXPECT_ERROR(import_as(ALICE, 5101, own_node, "access.group"), -EACCES);
	EXPECT_ERROR(import_as(0, 0, own_node, "access.group"), -EACCES);
	end(pid);
	pid = exporter(ALICE, STAFF, "access.any", 0);
	EXPECT_ERROR(import_as(BOB, 5101, own_node, "access.any"), 0);
	end(pid);
	EXPECT_ERROR(import_as(BOB, 5101, own_node, "access.any"), -ENOENT);
}

static void other_node(void)
{
	EXPECT_ERROR(import_as(0, 0, PEER_NODE, NAME_UID0), 0);
	EXPECT_ERROR(import_as(ALICE, STAFF, PEER_NODE, NAME_UID0), -EACCES);
	EXPECT_ERROR(import_as(ALICE, 0, PEER_NODE, NAME_GID0), 0);
	EXPECT_ERROR(import_as(ALICE, STAFF, PEER_NODE, NAME_GID0), -EACCES);
	EXPECT_ERROR(import_as(0, 0, PEER_NODE, NAME_NODE1), -EACCES);
	EXPECT_ERROR(import_as(ALICE, STAFF, PEER_NODE, "no such name"),
		     -ENOENT);
	EXPECT_ERROR(import_as(ALICE, STAFF, 15, NAME_SANDBOX), -EHOSTUNREACH);
	EXPECT_ERROR(
		import_as(ALICE, STAFF, 1u << 16 | PEER_NODE, NAME_SANDBOX),
		-EHOSTUNREACH);
}

static void names(void)
{
	vmmc_t *a = lib_open(), *b = lib_open();
	vmmc_export_t *e, *f;
	unsigned char *p = pages(2 * PAGE);
	char longest[VMMC_NAME_MAX + 2];

	memset(longest, 'n', sizeof(longest));
	longest[VMMC_NAME_MAX] = 0;
	EXPECT_OK(vmmc_export(a, p, PAGE, longest, 0, NULL, &e));
	EXPECT_ERROR(vmmc_export(a, p, PAGE, longest, 0, NULL, &f), -EEXIST);
	EXPECT_ERROR(vmmc_export(b, p, PAGE, longest, 0, NULL, &f), -EEXIST);
	EXPECT_ERROR(import_as(BOB, BOB, own_node, longest), 0);
	EXPECT_OK(vmmc_unexport(e));
	EXPECT_OK(vmmc_export(b, p, PAGE, longest, 0, NULL, &f));
	EXPECT_OK(vmmc_unexport(f));
	longest[VMMC_NAME_MAX] = 'n';
	longest[VMMC_NAME_MAX + 1] = 0;
	EXPECT_ERROR(vmmc_export(a, p, PAGE, longest, 0, NULL, &e), -EINVAL);
	EXPECT_ERROR(vmmc_export(a, p, PAGE, "", 0, NULL, &e), -EINVAL);
	EXPECT_ERROR(vmmc_export(a, p, PAGE, NULL, 0, NULL, &e), -EINVAL);
	/* Any bytes but NUL make a name. */
	EXPECT_OK(vmmc_export(a, p, PAGE, "\x01 /%s\xff", 0, NULL, &e));
	EXPECT_ERROR(import_as(BOB, BOB, own_node, "\x01 /%s\xff"), 0);
	EXPECT_ERROR(import_as(BOB, BOB, own_node, "\x01 /%s"), -ENOENT);
	vmmc_close(a);
	vmmc_close(b);
	munmap(p, 2 * PAGE);
}

static void memory(void)
{
	vmmc_t *v = lib_open();
	unsigned char *p = pages(4 * PAGE);
	char path[] = "/tmp/accessXXXXXX";
	vmmc_export_t *e;
	void *other;
	int fd;

	EXPECT_ERROR(vmmc_export(v, p + 1, PAGE, "m", 0, NULL, &e), -EINVAL);
	EXPECT_ERROR(vmmc_export(v, p, PAGE + 1, "m", 0, NULL, &e), -EINVAL);
	EXPECT_ERROR(vmmc_export(v, p, 0, "m", 0, NULL, &e), -EINVAL);
	EXPECT_ERROR(vmmc_export(v, p, PAGE, "m", 8, NULL, &e), -EINVAL);
	EXPECT_ERROR(vmmc_export(v, p, PAGE, "m", 6, NULL, &e), -EINVAL);
	munmap(p + 2 * PAGE, PAGE);
	EXPECT_ERROR(vmmc_export(v, p, 4 * PAGE, "m", 0, NULL, &e), -EFAULT);
	mprotect(p, PAGE, PROT_READ);
	EXPECT_ERROR(vmmc_export(v, p, 2 * PAGE, "m", 0, NULL, &e), -EFAULT);
	EXPECT_ERROR(vmmc_export(v, (void *)0x10000, PAGE, "m", 0, NULL, &e),
		     -EFAULT);
	EXPECT_ERROR(vmmc_export(v, (void *)-8192l, PAGE, "m", 0, NULL, &e),
		     -EINVAL);

	/* Memory files are memory; other files are not. */
	fd = memfd_create("access", MFD_CLOEXEC);
	other = ftruncate(fd, PAGE) ? MAP_FAILED
				    : mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					   MAP_SHARED, fd, 0);
	if (EXPECT_OK(vmmc_export(v, other, PAGE, "m", 0, NULL, &e)))
		EXPECT_OK(vmmc_unexport(e));
	close(fd);
	fd = mkstemp(path); /* tmpfs, too: memory */
	other = ftruncate(fd, PAGE) ? MAP_FAILED
				    : mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					   MAP_SHARED, fd, 0);
	if (EXPECT_OK(vmmc_export(v, other, PAGE, "m", 0, NULL, &e)))
		EXPECT_OK(vmmc_unexport(e));
	close(fd);
	unlink(path);
	vmmc_close(v);
}

/* All that a child can do with its parent's endpoint is to close it. */
static int as_child(vmmc_t *v, vmmc_import_t *i)
{
	struct vmmc_notification n;
	vmmc_export_t *e;
	uint64_t time;

	if (vmmc_send(i, 0, "x", 1, 0, 0) != -EPERM)
		return 1;
	if (vmmc_poll(v, &n) != -EPERM || vmmc_wait(v, &n, 0) != -EPERM)
		return 2;
	if (vmmc_export(v, pages(PAGE), PAGE, "child", 0, NULL, &e) != -EPERM)
		return 3;
	if (vmmc_time(v, &time) != -EPERM || vmmc_notify_fd(v) != -EPERM)
		return 4;
	vmmc_close(v);
	return 0;
}

static void forks(void)
{
	vmmc_t *v = lib_open();
	unsigned char *p = pages(PAGE);
	int status = 0;
	vmmc_export_t *e;
	vmmc_import_t *i;
	pid_t pid;

	if (!EXPECT_OK(vmmc_export(v, p, PAGE, "access.fork", 0, NULL, &e)) ||
	    !EXPECT_OK(vmmc_import(v, own_node, "access.fork", 5000, NULL, &i)))
		return;
	pid = fork();
	if (pid == 0)
		_exit(as_child(v, i));
	waitpid(pid, &status, 0);
	EXPECT(status == 0, "child: status %#x", (unsigned)status);
	/* The parent goes on, its export included. */
	EXPECT_OK(vmmc_send(i, 8, "parent", 6, 0, 0));
	for (int k = 0; k < 2000 && memcmp(p + 8, "parent", 6); k++)
		usleep(1000);
	EXPECT(memcmp(p + 8, "parent", 6) == 0,
	       "the export did not survive fork");
	vmmc_close(v);
}

static void strangers(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		vmmc_t *v;

		if (setgid(BOB) || setgroups(0, NULL) || setuid(BOB))
			_exit(1);
		_exit(vmmc_open(NULL, 0, &v) == -EACCES ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	EXPECT(status == 0, "child: status %#x", (unsigned)status);
}

int main(void)
{
	struct vmmc_info info;
	vmmc_t *v = lib_open(); /* as root: the cases choose their users */

	vmmc_query(v, &info);
	own_node = info.node;
	vmmc_close(v);
	tap_run("a user outside of the group cannot open the card", strangers);
	tap_run("imports by user and group, on one node", users);
	tap_run("imports by user, group and node, from another node",
		other_node);
	tap_run("names", names);
	tap_run("memory that can be exported", memory);
	tap_run("endpoints and fork", forks);
	return tap_end();
}
