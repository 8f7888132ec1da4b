/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VMMC_INTERNAL_H
#define VMMC_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <vmmc.h>

#include "card.h"
#include "pins.h"

#define VMMC_API __attribute__((visibility("default")))

/* A send under way; in the endpoint's table until its owner has seen the end.
 */
struct request {
	uint32_t generation; /* of the slot; never 0 */
	bool used;
	uint32_t pieces; /* commands not completed */
	uint32_t import_id;
	const struct vmmc_imported *import;
	uint64_t source; /* what has not been posted yet */
	uint64_t offset;
	uint64_t left;
	bool unposted; /* something is (perhaps of no length) */
	uint32_t flags, immediate;
	bool accepted; /* result.accepted_ps is set */
	bool let_go;   /* its import has gone: post nothing more of it */
	struct vmmc_completion result;
};

/* One command in the ring, or waiting to be repeated. */
struct piece {
	uint32_t request; /* slot */
	uint32_t length;
	uint64_t source;
	uint64_t offset;
	uint32_t flags;
	uint32_t tries;
};

/* What a cookie in the notification ring names. */
struct object {
	uint32_t generation;
	bool used;
	void *user;
	void *handle; /* vmmc_export_t or vmmc_import_t; freed by close */
};

struct vmmc {
	pthread_mutex_t lock;
	unsigned int fork_generation;
	struct card card;
	struct pin_table pins;

	uint32_t mask;	    /* entries of command and completion ring - 1 */
	uint32_t producer;  /* commands issued */
	uint32_t completed; /* completions consumed */
	uint32_t noticed;   /* notifications consumed */
	uint32_t told;	    /* as the card knows */

	struct request *request; /* mask + 1 slots */
	uint32_t *free_request;	 /* stack of slots */
	uint32_t free_requests;
	uint32_t posting; /* slot with an unposted rest */
	bool is_posting;
	struct piece *piece;  /* by ring index */
	struct piece *repeat; /* queue, mask + 1 places */
	uint32_t repeat_head, repeat_tail;
	uint32_t senders; /* threads inside vmmc_send() */
	uint32_t stuck;	  /* those of them that have no request yet */

	struct object *object;
	uint32_t objects;

	int notify_fd;
};

struct vmmc_exported {
	vmmc_t *v;
	uint32_t id, object;
	uint64_t va, length;
};

struct vmmc_imported {
	vmmc_t *v;
	uint32_t id, object;
	uint64_t length;
};

/* 0, or -EPERM in a forked child. */
int vmmc_check_owner(const vmmc_t *v);

/* With the lock held. */
int requests_init(vmmc_t *v);
void requests_free(vmmc_t *v);
void progress(vmmc_t *v);
void requests_let_go(vmmc_t *v, const vmmc_import_t *i);

/* Barriers by what they are for. x86 and RISC-V agree with the compiler's. */
static inline void ring_write_before_doorbell(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline uint32_t seq_read_before_entry(const prawn_le32 *seq)
{
	return __atomic_load_n(seq, __ATOMIC_ACQUIRE);
}

static inline void doorbell_write(vmmc_t *v, unsigned int reg, uint64_t value)
{
	ring_write_before_doorbell();
	v->card.doorbell[reg / 8] = value;
}

static inline void cpu_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

uint64_t clock_ns(void);

#endif
