/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prawn-agent: process 1 of a Prawn guest, and the guest's end of the control
 * channel, which is the second serial port.
 *
 * One line is one message, words separated by one blank, everything free-form
 * in base64, so that nothing a command prints can be mistaken for a message:
 *
 *   launcher to guest                     guest to launcher
 *   run ID root|user BASE64(shell text)   hello PROTOCOL NODE RELEASE
 *   kill ID SIGNAL                        out ID BASE64   err ID BASE64
 *   ping                                  exit ID STATUS (128 + signal)
 *   poweroff                              pong
 *                                         bye STATUS (interactive shell left)
 *
 * In step with the model nothing may come from outside, or no two runs would be
 * alike: then AGENT_SCRIPT, a file of the image, holds messages to the guest.
 * The agent takes them one by one, the next when no command is running.
 *
 * What is no message is ignored. A command that the agent cannot start exits
 * with 127 and a line on its standard error. Several commands run at a time.
 */
#define _GNU_SOURCE

#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { MAX_JOBS = 64 };

struct job {
	unsigned long id;
	pid_t pid;  /* 0 = slot free */
	int fd[2];  /* read ends of standard output and error, -1 = closed */
	int status; /* wait status, valid once reaped */
	int reaped;
};

static struct job jobs[MAX_JOBS];
static pid_t shell_pid;
static const char *node = "0";
static FILE *script;

static void power(int how)
{
	agent_flush();
	sync();
	reboot(how);
}

static void hello(void)
{
	struct utsname name;

	uname(&name);
	agent_say("hello %d %s %s", AGENT_PROTOCOL, node, name.release);
}

/* In the child: become the ordinary user, as a login would. */
static void become(int root)
{
	/* As an HPC site's limits.conf has it: pinned memory is the trade. */
	const struct rlimit memlock = { 256UL << 20, 256UL << 20 };
	const gid_t groups[] = { AGENT_PRAWN_GID };

	setenv("PATH", root ? "/sbin:/bin" : "/bin", 1);
	setenv("HOME", root ? "/root" : "/home/user", 1);
	setenv("USER", root ? "root" : "user", 1);
	if (root)
		return;
	if (setrlimit(RLIMIT_MEMLOCK, &memlock) || setgroups(1, groups) ||
	    setgid(AGENT_USER_GID) || setuid(AGENT_USER_UID))
		_exit(126);
	if (chdir("/home/user"))
		_exit(126);
}

static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void start(unsigned long id, int root, const char *text)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, null;
	struct job *job = NULL;

	for (int i = 0; i < MAX_JOBS && !job; i++)
		if (!jobs[i].pid)
			job = &jobs[i];
	if (!job || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
		static const char why[] = "agent: too many commands\n";

		if (out[0] >= 0) {
			close(out[0]);
			close(out[1]);
		}
		agent_say_data("err", id, why, sizeof(why) - 1);
		agent_say("exit %lu 127", id);
		return;
	}
	job->pid = fork();
	if (job->pid == 0) {
		setsid();
		null = open("/dev/null", O_RDONLY);
		dup2(null, 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		unblock_signals();
		become(root);
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	close(err[1]);
	if (job->pid < 0) {
		job->pid = 0;
		close(out[0]);
		close(err[0]);
		agent_say("exit %lu 127", id);
		return;
	}
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	job->id = id;
	job->fd[0] = out[0];
	job->fd[1] = err[0];
	job->reaped = 0;
}

static void start_shell(void)
{
	shell_pid = fork();
	if (shell_pid == 0) {
		int tty;

		setsid();
		tty = open("/dev/ttyS0", O_RDWR);
		/* A controlling terminal of its own makes job control work. */
		tcsetpgrp(tty, getpgrp());
		dup2(tty, 0);
		dup2(tty, 1);
		dup2(tty, 2);
		unblock_signals();
		become(1);
		if (chdir("/root"))
			_exit(126);
		execl("/bin/sh", "-sh", (char *)NULL);
		_exit(127);
	}
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

/* A job is over when its process is; output that was written before is read
 * first, whatever its descendants in the background still hold open. */
static void finish(struct job *job)
{
	for (int k = 0; k < 2; k++) {
		while (job->fd[k] >= 0) {
			char data[1024];
			ssize_t n = read(job->fd[k], data, sizeof(data));

			if (n <= 0)
				break;
			agent_say_data(k ? "err" : "out", job->id, data,
				       (size_t)n);
		}
		if (job->fd[k] >= 0)
			close(job->fd[k]);
	}
	agent_say("exit %lu %d", job->id, exit_status(job->status));
	job->pid = 0;
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == shell_pid) {
			agent_say("bye %d", exit_status(status));
			power(RB_POWER_OFF);
		}
		for (int i = 0; i < MAX_JOBS; i++) {
			if (jobs[i].pid == pid) {
				jobs[i].status = status;
				jobs[i].reaped = 1;
			}
		}
	}
}

void agent_message(char *line)
{
	unsigned long id;
	char who[8];
	int number, at = 0;

	if (strcmp(line, "ping") == 0) {
		agent_say("pong");
	} else if (strcmp(line, "hello") == 0) {
		hello();
	} else if (strcmp(line, "poweroff") == 0) {
		power(RB_POWER_OFF);
	} else if (sscanf(line, "kill %lu %d", &id, &number) == 2) {
		for (int i = 0; i < MAX_JOBS; i++)
			/* It may be too young to have its process group. */
			if (jobs[i].pid && jobs[i].id == id &&
			    kill(-jobs[i].pid, number))
				kill(jobs[i].pid, number);
	} else if (sscanf(line, "run %lu %7s %n", &id, who, &at) == 2 && at) {
		if (agent_decode(line + at))
			start(id, strcmp(who, "root") == 0, line + at);
	}
}

static void script_step(void)
{
	static char line[96 << 10];

	for (int i = 0; i < MAX_JOBS; i++)
		if (jobs[i].pid)
			return;
	if (!script || !fgets(line, sizeof(line), script))
		return;
	line[strcspn(line, "\n")] = 0;
	agent_message(line);
}

/* Busybox's poweroff, halt and reboot ask process 1 by these signals. */
static void signals(int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap();
		else if (info.ssi_signo == SIGTERM)
			power(RB_AUTOBOOT);
		else
			power(RB_POWER_OFF);
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int main(void)
{
	const char *port = "/dev/ttyS1";
	int channel, sigs, events;

	if (getenv("prawn_node"))
		node = getenv("prawn_node");
	sigs = open_signals();
	channel = agent_open(port);
	events = agent_uevents_open();
	hello();
	if (getenv("prawn_shell"))
		start_shell();
	script = fopen(AGENT_SCRIPT, "re");
	for (;;) {
		struct pollfd fds[3 + 2 * MAX_JOBS];
		nfds_t count = 3;

		script_step();
		fds[0] = (struct pollfd){ channel, POLLIN, 0 };
		fds[1] = (struct pollfd){ sigs, POLLIN, 0 };
		fds[2] = (struct pollfd){ events, POLLIN, 0 };
		if (agent_backlog())
			fds[0].events |= POLLOUT;
		/* While the channel is behind, whoever prints has to wait. */
		for (int i = 0; i < MAX_JOBS && agent_backlog() < 65536; i++)
			for (int k = 0; k < 2 && jobs[i].pid; k++)
				if (jobs[i].fd[k] >= 0)
					fds[count++] =
						(struct pollfd){ jobs[i].fd[k],
								 POLLIN, 0 };
		if (poll(fds, count, -1) < 0 && errno != EINTR)
			continue;
		agent_pump(fds[0].revents);
		if (fds[1].revents)
			signals(sigs);
		if (fds[2].revents)
			agent_uevents(events);
		for (int i = 0; i < MAX_JOBS; i++) {
			struct job *job = &jobs[i];

			for (int k = 0; k < 2 && job->pid; k++) {
				char data[1024];
				ssize_t n;

				if (job->fd[k] < 0 || agent_backlog() >= 65536)
					continue;
				n = read(job->fd[k], data, sizeof(data));
				if (n > 0) {
					agent_say_data(k ? "err" : "out",
						       job->id, data,
						       (size_t)n);
				} else if (n == 0 || (errno != EAGAIN &&
						      errno != EINTR)) {
					close(job->fd[k]);
					job->fd[k] = -1;
				}
			}
			if (job->pid && job->reaped && agent_backlog() < 65536)
				finish(job);
		}
	}
}
