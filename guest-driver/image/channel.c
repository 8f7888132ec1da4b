/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's end of the control channel: lines, base64, uevents. */
#define _GNU_SOURCE

#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

static int channel = -1;

static char *pending; /* bytes that the port has not taken yet */
static size_t pending_size, pending_room;

static char line[96 << 10]; /* the longest message, a command of 64 KiB */
static size_t line_size;
static int line_skip; /* inside a line that was too long */

int agent_open(const char *port)
{
	struct termios raw;

	channel = open(port, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (channel < 0)
		return -1;
	if (tcgetattr(channel, &raw) == 0) {
		cfmakeraw(&raw);
		cfsetspeed(&raw,
			   B115200); /* a number only: QEMU has no baud rate */
		tcsetattr(channel, TCSANOW, &raw);
	}
	return channel;
}

static void queue(const char *data, size_t size)
{
	if (pending_size + size > pending_room) {
		size_t room = (pending_size + size) * 2;
		char *bigger = realloc(pending, room);

		if (!bigger)
			return;
		pending = bigger;
		pending_room = room;
	}
	memcpy(pending + pending_size, data, size);
	pending_size += size;
}

size_t agent_backlog(void)
{
	return pending_size;
}

static void drain(void)
{
	while (pending_size) {
		ssize_t n = write(channel, pending, pending_size);

		if (n <= 0)
			return;
		pending_size -= (size_t)n;
		memmove(pending, pending + n, pending_size);
	}
}

/* Before power-off: everything out, but never hang for it. */
void agent_flush(void)
{
	for (int i = 0; i < 100 && pending_size; i++) {
		struct pollfd fd = { channel, POLLOUT, 0 };

		drain();
		poll(&fd, 1, 20);
	}
	tcdrain(channel);
}

void agent_say(const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	if (n < 0 || n >= (int)sizeof(text) - 1)
		return;
	text[n] = '\n';
	queue(text, (size_t)n + 1);
	drain();
}

void agent_say_data(const char *kind, unsigned long id, const void *data,
		    size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"
				     "pqrstuvwxyz0123456789+/";
	const uint8_t *in = data;
	char head[64];

	queue(head, (size_t)snprintf(head, sizeof(head), "%s %lu ", kind, id));
	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t bits = (uint32_t)in[i] << 16;
		char out[4];

		if (left > 1)
			bits |= (uint32_t)in[i + 1] << 8;
		if (left > 2)
			bits |= in[i + 2];
		out[0] = digits[bits >> 18];
		out[1] = digits[bits >> 12 & 63];
		out[2] = left > 1 ? digits[bits >> 6 & 63] : '=';
		out[3] = left > 2 ? digits[bits & 63] : '=';
		queue(out, 4);
	}
	queue("\n", 1);
	drain();
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int agent_decode(char *text)
{
	uint32_t bits = 0;
	int count = 0;
	char *out = text;

	for (const char *in = text; *in && *in != '='; in++) {
		int value = digit(*in);

		if (value < 0)
			return 0;
		bits = bits << 6 | (uint32_t)value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			*out++ = (char)(bits >> count & 255);
		}
	}
	*out = 0;
	return 1;
}

void agent_pump(short revents)
{
	char data[4096];
	ssize_t n;

	if (revents & POLLOUT)
		drain();
	if (!(revents & (POLLIN | POLLHUP)))
		return;
	n = read(channel, data, sizeof(data));
	for (ssize_t i = 0; i < n; i++) {
		if (data[i] == '\n') {
			line[line_size] = 0;
			if (!line_skip)
				agent_message(line);
			line_size = 0;
			line_skip = 0;
		} else if (line_size < sizeof(line) - 1) {
			line[line_size++] = data[i];
		} else {
			line_skip = 1;
		}
	}
}

int agent_uevents_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK,
				       .nl_groups = 1 };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 &&
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	return -1;
}

void agent_uevents(int fd)
{
	char event[8192];
	ssize_t n;

	while ((n = recv(fd, event, sizeof(event) - 1, 0)) > 0) {
		const char *name = NULL;
		char path[64];

		event[n] = 0;
		if (strncmp(event, "add@", 4) != 0)
			continue;
		for (char *word = event; word < event + n;
		     word += strlen(word) + 1)
			if (strncmp(word, "DEVNAME=prawn", 13) == 0)
				name = word + 8;
		if (!name || strchr(name, '/') || strlen(name) > 16)
			continue;
		snprintf(path, sizeof(path), "/dev/%s", name);
		if (chown(path, 0, AGENT_PRAWN_GID) == 0)
			chmod(path, 0660);
	}
}
