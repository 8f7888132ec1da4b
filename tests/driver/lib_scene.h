/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of libvmmc: destinations on the other node, verified there by
 * protect_peer, and on the own node, verified here.
 */
#ifndef PRAWN_DRIVER_LIB_SCENE_H
#define PRAWN_DRIVER_LIB_SCENE_H

#include <stdint.h>

#include <vmmc.h>

#include "protect_scene.h"
#include "tap.h"

enum { LIB_UID = 4001 };

vmmc_t *lib_open(void);

/* A destination whose contents somebody verifies. */
struct checked {
	vmmc_t *v;
	vmmc_import_t *to;
	uint64_t size;
	/* remote */
	struct guarded verdict;
	vmmc_export_t *verdict_export;
	/* local */
	struct guarded inbox;
	vmmc_export_t *inbox_export;
};

/* End the case if they fail: false. */
bool checked_remote(struct checked *c, vmmc_t *v);
bool checked_local(struct checked *c, vmmc_t *v, const char *name, size_t size);
void checked_close(struct checked *c);

/*
 * Sends pattern(seed) from `source` (filled here) and waits until all of it,
 * and nothing else, has been seen at the receiver. The seed must be new, above
 * 0 and below CHECK_HELLO. Waits by vmmc_wait(): nothing else may be notified
 * to the endpoint meanwhile.
 */
bool checked_send(struct checked *c, uint64_t offset, void *source,
		  size_t length, uint32_t seed);
/* The second half of it, for who has sent by another way. */
bool checked_verify(struct checked *c, uint64_t offset, size_t length,
		    uint32_t seed);

/* checked_send() to the other node for a message that may go in pieces, whose
 * notification would speak of the last. */
bool checked_pieces(struct checked *c, uint64_t offset, void *source,
		    size_t length, uint32_t seed);

/* EXPECT that a call of the library succeeded. */
#define EXPECT_OK(error) lib_expect_ok(__FILE__, __LINE__, error)
bool lib_expect_ok(const char *file, int line, int error);

/* EXPECT that it gave this error. */
#define EXPECT_ERROR(got, want) \
	lib_expect_error(__FILE__, __LINE__, #got, got, want)
bool lib_expect_error(const char *file, int line, const char *text, int got,
		      int want);

#endif
