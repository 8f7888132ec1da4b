/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libvmmc - virtual memory-mapped communication between processes on different
 * nodes, without a system call on the path.
 *
 * A process exports a buffer under a name; another process, on any node,
 * imports it by node and name, and then writes into it. The receiving process
 * takes no part: data appears in its memory; a notification follows if both
 * sides want one.
 *
 * Errors: every int-returning function returns 0 or a positive result, or a
 * negative error: -errno (EINVAL, EAGAIN, ...), or VMMC_CARD_ERROR(status) for
 * what the card reports. vmmc_strerror() explains both.
 *
 * Threads: an endpoint may be used by several threads at a time; calls on it
 * are serialized by a lock that costs no system call when free. A blocking
 * call lets others in while it waits. Two endpoints share nothing. A request
 * is tested by one thread at a time. Closing while another thread is inside
 * is an error of the caller.
 *
 * Cards that go: a card that does not answer any more makes every call that
 * waits, and the driver is asked in, fail with -EIO; vmmc_test() and
 * vmmc_poll() ask nobody and just see nothing new. When the card is unbound,
 * removed or reset under an open endpoint its rings are unmapped: the next call
 * raises SIGBUS, as an access to the card itself would.
 *
 * Fork: the endpoint stays with the process that opened it; in the child every
 * call on it fails with -EPERM (close frees the child's copy).
 */
#ifndef VMMC_H
#define VMMC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VMMC_NAME_MAX 63 /* longest name of an export, NUL not counted */
#define VMMC_MESSAGE_MAX ((size_t)1 << 30) /* longest message, bytes */

/* Card status (see docs/registers.md, enum status) as an error and back. */
#define VMMC_CARD_ERROR(status) (-(4096 + (int)(status)))
#define VMMC_CARD_STATUS(error) (-(error) > 4096 ? -(error)-4096 : 0)

typedef struct vmmc vmmc_t; /* endpoint: one context of a card */
typedef struct vmmc_exported
	vmmc_export_t; /* own buffer that others may write */
typedef struct vmmc_imported vmmc_import_t; /* somebody's buffer we may write */
typedef uint64_t vmmc_request_t;	    /* a send under way; 0: none */

struct vmmc_info {
	uint32_t abi;		/* major << 16 | minor */
	uint16_t node;		/* this node */
	uint16_t nodes;		/* nodes of the fabric */
	uint16_t context;	/* this endpoint's context on the card */
	uint16_t epoch;		/* this life of the card */
	uint64_t features;	/* register FEATURES */
	uint32_t commands;	/* entries of the command ring */
	uint32_t notifications; /* entries of the notification ring */
	uint32_t time_mode;	/* register TIME_MODE */
	uint32_t profile_crc;	/* register PROFILE */
};

/* Outcome of a send. Times are the card's clock: model time, picoseconds. */
struct vmmc_completion {
	int error;	      /* 0 or a negative error */
	uint64_t bytes;	      /* bytes that were handed to the network */
	uint64_t accepted_ps; /* the card accepted the doorbell */
	uint64_t finished_ps; /* the source had been read */
};

enum vmmc_notification_type {
	VMMC_MESSAGE = 1,     /* a message has arrived completely */
	VMMC_IMPORT_LOST = 2, /* an import can no longer be written */
	VMMC_EXPORT_LOST = 3, /* its memory was unmapped: export withdrawn */
};

struct vmmc_notification {
	int type;	    /* enum vmmc_notification_type */
	int error;	    /* VMMC_IMPORT_LOST, VMMC_EXPORT_LOST: why */
	void *object;	    /* user pointer given to export or import */
	uint64_t offset;    /* first byte of the message in the export */
	uint32_t length;    /* bytes */
	uint32_t immediate; /* given to the send */
	uint32_t count;	    /* messages this stands for (ring was full) */
	uint16_t source_node;
	uint16_t source_context;
	uint64_t delivered_ps; /* model time: last byte was in memory */
};

/* ---- endpoints ---------------------------------------------------------- */

/*
 * Open a context on a card. @device: path, NULL for $VMMC_DEVICE or
 * /dev/prawn0. @ring_log2: log2 of the command ring's entries, 4 to 12, 0 for
 * the default of 10 (1024).
 * -ENODEV no card or gone; -EACCES not in the group; -EBUSY no free context.
 */
int vmmc_open(const char *device, unsigned int ring_log2, vmmc_t **out);

/*
 * Withdraw all exports, drop imports and sends, free the context. Handles of
 * exports and imports go with it.
 */
void vmmc_close(vmmc_t *v);

int vmmc_query(vmmc_t *v, struct vmmc_info *info);

/* The card's clock in picoseconds: one read of a card register. */
int vmmc_time(vmmc_t *v, uint64_t *ps);

/* ---- receiving ---------------------------------------------------------- */

enum vmmc_export_flags {
	VMMC_EXPORT_NOTIFY = 1,	    /* notifications are wanted */
	VMMC_EXPORT_SAME_USER = 2,  /* only importers with our user id */
	VMMC_EXPORT_SAME_GROUP = 4, /* only importers with our group id */
};

/*
 * Let others write @length bytes at @buffer (page aligned, length a multiple
 * of the page size; anonymous or shared memory). The pages are pinned. @object
 * comes back in notifications. Unmapping the memory withdraws the export.
 * -EINVAL alignment, empty or long name; -EEXIST name in use on this node;
 * -ENOMEM RLIMIT_MEMLOCK; -EFAULT not writable memory; -EOPNOTSUPP memory that
 * cannot be pinned (a file mapping); -ENOSPC no entry left on the card; -EDQUOT
 * the process has as many exports as it may; -EINTR a signal came.
 */
int vmmc_export(vmmc_t *v, void *buffer, size_t length, const char *name,
		unsigned int flags, void *object, vmmc_export_t **out);

/* Returns when nothing can arrive any more. */
int vmmc_unexport(vmmc_export_t *e);

/*
 * Next notification: 1 and *n filled; 0 none. Never a system call, therefore
 * blind to what only the kernel knows (VMMC_EXPORT_LOST, and VMMC_IMPORT_LOST
 * of an import that nobody was sending to): vmmc_wait() sees that, too.
 */
int vmmc_poll(vmmc_t *v, struct vmmc_notification *n);

/*
 * Likewise, waits. @timeout_ms < 0: for ever. 0 after the time-out; -EINTR on
 * a signal. Polls for a moment, then sleeps in the kernel.
 */
int vmmc_wait(vmmc_t *v, struct vmmc_notification *n, int timeout_ms);

/*
 * An eventfd that becomes readable when notifications may be there. After it
 * has fired: read it, vmmc_wait() with time-out 0 until 0, then vmmc_rearm().
 */
int vmmc_notify_fd(vmmc_t *v);
int vmmc_rearm(vmmc_t *v);

/* ---- sending ------------------------------------------------------------ */

/*
 * Find the export @name on @node and get the right to write to it.
 * -ENOENT no such export; -EACCES its owner does not want us; -ETIMEDOUT no
 * answer; -EHOSTDOWN no driver there; -EHOSTUNREACH no such node; -ENOSPC no
 * entry left on the card; -EDQUOT the process has as many imports as it may;
 * -EINTR a signal came. What is under way when an import is let go ends in
 * VMMC_CARD_ERROR(BAD_IMPORT), if it has not been sent.
 */
int vmmc_import(vmmc_t *v, unsigned int node, const char *name, int timeout_ms,
		void *object, vmmc_import_t **out);
int vmmc_unimport(vmmc_import_t *i);

/* Bytes of an import. */
uint64_t vmmc_import_length(const vmmc_import_t *i);

enum vmmc_send_flags {
	VMMC_SEND_NOTIFY = 1, /* notify the receiver if it wants to be */
};

/*
 * Deliberate update: write @length bytes (0 to VMMC_MESSAGE_MAX, any
 * alignment) from @source to @offset in the import, and return when the source
 * may be reused. Delivery is in order and exactly once for one endpoint and
 * one peer; whether it was refused shows in a later call or notification.
 */
int vmmc_send(vmmc_import_t *i, uint64_t offset, const void *source,
	      size_t length, unsigned int flags, uint32_t immediate);

/*
 * The same without waiting. *request is then to be given to vmmc_test() or
 * vmmc_complete() until that says it is over; the source must stay as it is
 * until then. -EAGAIN: too many requests under way. Messages leave in the
 * order of the calls, with one exception: one whose page was unmapped and
 * mapped anew since it was last used is repeated from that page on, and may
 * be overtaken by later ones.
 */
int vmmc_isend(vmmc_import_t *i, uint64_t offset, const void *source,
	       size_t length, unsigned int flags, uint32_t immediate,
	       vmmc_request_t *request);

/* 1 over (*c filled, request gone); 0 not yet; c may be NULL. */
int vmmc_test(vmmc_t *v, vmmc_request_t request, struct vmmc_completion *c);

/* Wait for it: 1 over, 0 time-out. @timeout_ms < 0: for ever. */
int vmmc_complete(vmmc_t *v, vmmc_request_t request, struct vmmc_completion *c,
		  int timeout_ms);

/*
 * Pin memory before it is used, so that the first send is as fast as the
 * others; sends do it on demand. Unpin to give memory back early.
 */
int vmmc_pin(vmmc_t *v, const void *address, size_t length);
int vmmc_unpin(vmmc_t *v, const void *address, size_t length);

/* Text for any error of this library; static, never NULL. */
const char *vmmc_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* VMMC_H */
