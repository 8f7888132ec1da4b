/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PRAWN_GUEST_DRIVER_IMAGE_AGENT_H
#define PRAWN_GUEST_DRIVER_IMAGE_AGENT_H

#include <stddef.h>

/* Changes when the control channel's messages do; the launcher checks it. */
#define AGENT_PROTOCOL 1

/* Messages that the guest gives itself. */
#define AGENT_SCRIPT "/lib/prawn/script"

/* The same numbers as in the image's /etc/passwd and /etc/group. */
#define AGENT_USER_UID 1000
#define AGENT_USER_GID 1000
#define AGENT_PRAWN_GID 900

/* The channel. Messages are queued and written as the port takes them. */
int agent_open(const char *port);
void agent_pump(short revents);
void agent_flush(void);
size_t agent_backlog(void);
__attribute__((format(printf, 1, 2))) void agent_say(const char *format, ...);
void agent_say_data(const char *kind, unsigned long id, const void *data,
		    size_t size);

/* Base64 in place to a NUL-terminated text; 0 when it is not base64. */
int agent_decode(char *text);

/* Called for each complete line that arrives, without its end. */
void agent_message(char *line);

/* Permissions of cards that appear later, as a udev rule would set them. */
int agent_uevents_open(void);
void agent_uevents(int fd);

#endif
