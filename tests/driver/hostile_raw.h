/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The card as a process without the library sees it: ioctls, rings, doorbell
 * page. Nothing here keeps the caller from doing wrong; that is what it is for.
 * Functions return 0 or -errno unless said otherwise.
 */
#ifndef PRAWN_DRIVER_HOSTILE_RAW_H
#define PRAWN_DRIVER_HOSTILE_RAW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <prawn.h>

#include "prawn_hw.h"

#define RAW_DEVICE "/dev/prawn0"
#define RAW_PAGE 4096u

struct raw {
	int fd;
	struct prawn_query query;
	struct prawn_setup setup;
	uint32_t size; /* entries of command and completion ring */
	uint32_t producer;
	uint32_t rung; /* producer as the card knows it */
	uint32_t consumed;
	uint32_t noticed;
	struct prawn_command *command;
	const struct prawn_completion *completion;
	const struct prawn_notification *notification;
	volatile uint64_t *doorbell;
};

int raw_ioctl(int fd, unsigned long request, void *argument);

/* Opens the device; raw_setup() makes it a context and maps all of it. */
int raw_open(struct raw *r);
int raw_open_at(struct raw *r, const char *device);
int raw_setup(struct raw *r, unsigned ring_log2);
void raw_unmap(struct raw *r);
void raw_close(struct raw *r);

/* Open and set up, or tap_bail(). */
void raw_start(struct raw *r, unsigned ring_log2);

int raw_pin(struct raw *r, const void *address, uint64_t length);
int raw_unpin(struct raw *r, const void *address, uint64_t length);
int raw_export(struct raw *r, void *address, uint64_t length, const char *name,
	       uint32_t flags, uint32_t *id);
int raw_unexport(struct raw *r, uint32_t id);
int raw_import(struct raw *r, unsigned node, const char *name,
	       unsigned timeout_ms, uint32_t *id, uint64_t *length);
int raw_unimport(struct raw *r, uint32_t id);

/* Bytes this context has pinned. */
uint64_t raw_pinned(struct raw *r);

/* A counter of the card by name, 0 if there is none of that name. */
bool raw_counter(int fd, const char *name, uint64_t *value);

/* True if a command may be put without overrunning the ring. */
bool raw_room(const struct raw *r);
void raw_put(struct raw *r, const struct prawn_command *c);
void raw_ring(struct raw *r);

/* Next completion: 1, 0 after the time-out, -EIO if the context stopped. */
int raw_take(struct raw *r, struct prawn_completion *out, unsigned timeout_ms);

/* Puts, rings and waits. A completion that does not come ends the program. */
struct prawn_completion raw_do(struct raw *r, const struct prawn_command *c);

/* A well-formed SEND, and its status. */
struct prawn_command raw_send(uint32_t import_id, uint64_t offset,
			      const void *source, uint32_t length);
unsigned raw_status(struct raw *r, const struct prawn_command *c);

/* Register STATE of the doorbell page. */
uint32_t raw_state(const struct raw *r);

uint64_t now_ms(void);
void sleep_ms(unsigned ms);

/* Reproducible random numbers. */
struct random {
	uint64_t state;
};
uint64_t random_next(struct random *r);
uint64_t random_below(struct random *r, uint64_t limit);
void random_fill(struct random *r, void *to, size_t size);

#endif
