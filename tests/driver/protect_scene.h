/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of the protection tests agree on. On node 1 runs
 * protect_peer; on node 0 protect_victim streams to it all the time, while the
 * hostile_ and lib_ programs run one after another.
 */
#ifndef PRAWN_DRIVER_PROTECT_SCENE_H
#define PRAWN_DRIVER_PROTECT_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEER_NODE = 1, PAGE = 4096 };

/* Exports of the peer. */
#define NAME_STREAM "protect.stream"   /* the victim's stream */
#define NAME_CHECK "protect.check"     /* verified on request, see below */
#define NAME_SANDBOX "protect.sandbox" /* hostile processes may write it */
#define NAME_SECRET "protect.secret"   /* only the victim imports it */
#define NAME_FLICKER "protect.flicker" /* comes and goes all the time */
#define NAME_UID0 "protect.uid0"       /* for its own user, root */
#define NAME_GID0 "protect.gid0"       /* for its own group, root */
#define NAME_NODE1 "protect.node1"     /* for its own node */
/* Exports of node 0. */
#define NAME_ACK "protect.ack"	       /* of the victim, see struct ack */
#define NAME_VERDICT "protect.verdict" /* of who uses NAME_CHECK */

enum {
	STREAM_SLOTS = 4,
	STREAM_SLOT = 64 * 1024,
	STREAM_END = 0x7fffffff, /* immediate of the last message */
	SANDBOX_SIZE = 64 * 1024,
	CHECK_SIZE = 16 << 20, /* and a page of orders */
	CHECK_HELLO =
		0x7ffffff0, /* immediates of empty messages to NAME_CHECK */
	CHECK_QUIT = 0x7ffffff1,
	CHECK_ORDER = 0x7ffffff2, /* with a struct order at CHECK_SIZE */
};

/* Written by the peer into NAME_ACK. */
struct ack {
	uint64_t messages; /* verified so far */
	uint64_t bad;	   /* messages that were wrong */
};

/* Written by the peer into NAME_VERDICT for each message to NAME_CHECK: the
 * range must hold pattern(seed = immediate), its surroundings CHECK_FILL. */
enum { CHECK_FILL = 0xa5 };
/* The same for what was sent without notification. */
struct order {
	uint64_t offset;
	uint64_t length;
	uint64_t seed;
};
struct verdict {
	uint32_t seed;
	uint32_t ok;
	uint64_t offset;
	uint64_t length;
};

/* The victim's state for all to see, in shared memory. */
#define VICTIM_FILE "/dev/shm/protect.victim"
#define VICTIM_SOURCE ((void *)0x100000000000) /* where its source lies */
struct victim_state {
	uint64_t bytes; /* that the receiver has verified */
	uint64_t messages;
	uint64_t worst_gap_ms; /* longest time without progress */
	uint32_t running;
	uint32_t failed;
};

/* Progress of the victim during a case: mark, then expect. Without a victim
 * both do nothing, so that a program can be tried alone. */
void victim_mark(void);
void victim_expect_progress(void);
const volatile struct victim_state *victim_look(void);

/* A buffer with a page of canary before and after it; size in whole pages. */
struct guarded {
	unsigned char *buffer;
	size_t size;
	uint64_t seed;
};
bool guarded_make(struct guarded *g, size_t size, uint64_t seed, void *where);
/* Reports what is wrong, and says whether all is well. */
bool guarded_intact(const struct guarded *g, const char *name);
void guarded_free(struct guarded *g);

/* Bytes that depend on seed and place; any alignment. */
void pattern_fill(void *to, size_t size, uint64_t seed);
/* Index of the first wrong byte, or -1. */
long pattern_check(const void *at, size_t size, uint64_t seed);
/* Index of the first byte that is not `value`, or -1. */
long first_other(const void *at, size_t size, unsigned char value);

/* Become an ordinary user who may open the card. Ends the program if it cannot.
 */
void become(unsigned uid, unsigned gid);
void limit_memlock(size_t bytes);

/* Anonymous memory, populated; ends the program if there is none. */
void *pages(size_t size);

#endif
