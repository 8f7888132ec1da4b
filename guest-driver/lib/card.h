/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's only view of the driver: system calls and mappings. Functions
 * return 0 or -errno. card.c implements it on /dev/prawnN, the unit tests on
 * a card of their own.
 */
#ifndef VMMC_CARD_H
#define VMMC_CARD_H

#include <stdint.h>

#include "prawn_hw.h"

struct card {
	int fd;
	uint32_t commands;	/* entries of command and completion ring */
	uint32_t notifications; /* entries of the notification ring */
	struct prawn_command *command;
	const struct prawn_completion *completion;
	const struct prawn_notification *notification;
	volatile uint64_t *doorbell; /* the context's page of BAR 2 */
	uint32_t abi;
	uint16_t node, nodes, context, epoch;
	uint64_t features;
	uint32_t time_mode, profile_crc;
};

int card_open(struct card *c, const char *path, unsigned int ring_log2);
void card_close(struct card *c);
/* Only memory and descriptor, in a forked child. */
void card_forget(struct card *c);

int card_pin(struct card *c, uint64_t va, uint64_t length);
int card_unpin(struct card *c, uint64_t va, uint64_t length);

int card_export(struct card *c, uint64_t va, uint64_t length, const char *name,
		unsigned int flags, uint64_t cookie, uint32_t *id);
int card_unexport(struct card *c, uint32_t id);
int card_import(struct card *c, unsigned int node, const char *name,
		int timeout_ms, uint64_t cookie, uint32_t *id,
		uint64_t *length);
int card_unimport(struct card *c, uint32_t id);

struct card_event {
	uint32_t kind; /* PRAWN_EVENT_* */
	uint64_t cookie;
	uint32_t status;
};

/* -EAGAIN: there is none. */
int card_next_event(struct card *c, struct card_event *e);

/*
 * Sleep until the completion ring's producer differs from @completions (if
 * @want_completion) or the notification ring's from @notifications or a
 * software event is there (if @want_notification). -ETIMEDOUT, -EINTR, or 0
 * (perhaps without cause).
 */
int card_wait(struct card *c, int want_completion, uint32_t completions,
	      int want_notification, uint32_t notifications,
	      int64_t timeout_ns);
int card_eventfd(struct card *c, int fd);

#endif
