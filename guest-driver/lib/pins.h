/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library knows to be pinned: the user half of the UTLB. A bitmap of
 * pages in chunks of 64 (256 KiB), found by hashing; the common path is one
 * look-up a chunk and no system call.
 *
 * The knowledge may be stale (the process unmapped a page): then the card says
 * so, and pins_forget() makes the next use ask the kernel again.
 *
 * Callers hold the endpoint's lock.
 */
#ifndef VMMC_PINS_H
#define VMMC_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIN_PAGE_SHIFT 12
#define PIN_PAGE ((uint64_t)1 << PIN_PAGE_SHIFT)
#define PIN_CHUNK_SHIFT 18
#define PIN_CHUNK ((uint64_t)1 << PIN_CHUNK_SHIFT)

struct pin_chunk;

/* How to ask the kernel; 0 or -errno. @va page aligned, @length in pages. */
struct pin_ops {
	int (*pin)(void *arg, uint64_t va, uint64_t length);
	int (*unpin)(void *arg, uint64_t va, uint64_t length);
	void *arg;
};

struct pin_table {
	struct pin_ops ops;
	struct pin_chunk **bucket;
	size_t buckets; /* power of two */
	size_t chunks;
	uint64_t clock; /* for LRU */
};

int pins_init(struct pin_table *t, const struct pin_ops *ops);
void pins_free(struct pin_table *t); /* forgets; does not unpin */

/*
 * Make [va, va + length) pinned and in use (until pins_put), as much of it
 * from the start as can be. *held: bytes that are now held; less than length
 * only where a limit was met, after unpinning what was not in use, and then
 * it ends at a page. Returns 0 if any byte is held, else -errno.
 */
int pins_get(struct pin_table *t, uint64_t va, uint64_t length, uint64_t *held);
void pins_put(struct pin_table *t, uint64_t va, uint64_t length);

/* Unpin what has not been used for longest; false: all is in use, or nothing
 * is pinned. */
bool pins_evict(struct pin_table *t);

/* The kernel's view has changed: pages of the range must be asked for anew. */
void pins_forget(struct pin_table *t, uint64_t va, uint64_t length);

/* Unpin what is pinned in the range; -EBUSY if some of it is in use. */
int pins_drop(struct pin_table *t, uint64_t va, uint64_t length);

#endif
