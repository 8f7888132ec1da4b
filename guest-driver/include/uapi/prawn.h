/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * /dev/prawnN: what a process may ask of prawn.ko.
 *
 * One open file is one context (a protection domain on the card), and it
 * belongs to the address space that opened it: any other process that holds
 * the descriptor, such as a child after fork() or the program after execve(),
 * gets EPERM from everything but close().
 *
 * The order of use: QUERY, SETUP, mmap() of the four regions; PIN, EXPORT,
 * IMPORT as needed; then commands go through the rings (prawn_hw.h) with no
 * system call, and WAIT or an eventfd is for those who want to sleep.
 *
 * All structures: fixed widths, no implicit padding, same layout for 32 and
 * 64 bits. rsvd must be 0 (EINVAL). An unknown number gives ENOTTY.
 *
 * Errors that every call may give:
 *   EPERM    another address space opened the file
 *   ENODEV   the card has been removed, or the driver unbound
 *   EIO      the card does not answer any more, was reset, or has stopped this
 *            context; close the file and open it again
 *   EFAULT   the argument cannot be read or written
 *   EINVAL   rsvd or an unknown flag is not 0, or a field makes no sense
 *   EINTR    a signal came; nothing was done unless the call says otherwise
 *   ENOTCONN before SETUP (all but QUERY and COUNTER)
 *   ENOMEM   no memory
 *   EPROTO   the card, or the driver of another node, gave an answer that this
 *            driver does not understand
 */

#ifndef PRAWN_UAPI_PRAWN_H
#define PRAWN_UAPI_PRAWN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Raised when a call or a flag is added; nothing is ever removed. */
#define PRAWN_UAPI_VERSION 2

/* Bytes of an export's name, NUL included; as in management messages. */
#define PRAWN_NAME_SIZE 64

#define PRAWN_NO_CONTEXT 0xffffffffU
#define PRAWN_NO_PTP 0xffffffffU

/*
 * Regions for mmap(): MAP_SHARED, the whole region or a part of it, at the
 * offset that QUERY or SETUP returns. A region of size 0 is not there (EINVAL).
 * They are not inherited by fork(). The rings that the card writes can be
 * mapped for reading only (EACCES). When the card goes away an access raises
 * SIGBUS.
 */
enum prawn_region_index {
	PRAWN_REGION_COMMAND = 0,      /* ring of prawn_command, writable */
	PRAWN_REGION_COMPLETION = 1,   /* ring of prawn_completion, read-only */
	PRAWN_REGION_NOTIFICATION = 2, /* ring of prawn_notification, read-only */
	PRAWN_REGION_DOORBELL = 3,     /* doorbell page, writable, uncached */
	PRAWN_REGION_MEMORY = 4,       /* proxy pages: sources */
	PRAWN_REGION_DESTINATION = 5,  /* proxy pages: destinations */
	PRAWN_REGION_UPDATE = 6,       /* automatic-update window */
	PRAWN_REGION_RESERVED = 7,
	PRAWN_REGIONS = 8
};

struct prawn_region {
	__u64 offset; /* for mmap() */
	__u64 size;   /* bytes; 0: not there */
};

/* What the card is, and what this file has got so far. Works before SETUP. */
struct prawn_query {
	__u32 uapi;        /* PRAWN_UAPI_VERSION of the driver */
	__u32 card_abi;    /* register ABI */
	__u64 features;    /* register FEATURES */
	__u16 node;        /* this node */
	__u16 nodes;       /* nodes of the fabric */
	__u16 epoch;       /* this life of the node */
	__u16 vectors;     /* interrupt vectors in use */
	__u32 time_mode;   /* register TIME_MODE */
	__u32 profile;     /* register PROFILE: CRC-32C of its name */
	__u32 contexts;    /* limits of the card */
	__u32 opt_entries;
	__u32 ipt_entries;
	__u32 context;     /* id; PRAWN_NO_CONTEXT before SETUP */
	__u32 command_log2; /* ring sizes as set up; 0 before SETUP */
	__u32 notify_log2;
	__u64 pinned;      /* bytes that this context has pinned now */
	__u64 max_message; /* longest message of one command, bytes */
	__u32 ptp_index;   /* PTP clock: N of /dev/ptpN, or PRAWN_NO_PTP; since
			      uapi 2, always 0 before */
	__u32 rsvd0;       /* 0 */
	__u64 rsvd[3];     /* 0 */
	struct prawn_region region[PRAWN_REGIONS];
};

/*
 * Allocate rings, enable the context. Once per file.
 *   EALREADY done before     ENOSPC all contexts of the card are in use
 */
struct prawn_setup {
	__u32 flags;        /* 0 */
	__u32 command_log2; /* log2 of command and completion ring; 4 to 12 */
	__u32 notify_log2;  /* log2 of the notification ring; 4 to 12 */
	__u32 rsvd;
	__u32 context;      /* out: id */
	__u32 vector;       /* out: interrupt vector; several contexts share one */
	struct prawn_region region[PRAWN_REGIONS]; /* out */
};

/* The card may also write the pages (as a receive buffer does). */
#define PRAWN_PIN_WRITE 1U

/*
 * Pin the pages that contain [address, address + length), so that commands may
 * name them as a source. Pinning what is pinned already costs nothing and
 * charges nothing; pages are not counted: one UNPIN undoes any number of PINs.
 *
 * A pin is a promise only until the address space changes: munmap, mremap,
 * madvise, mprotect, copy-on-write by this process, or memory pressure may drop
 * it. The command then completes with status NOT_PINNED and the address of the
 * page; pin it again and send what is missing (field bytes).
 *
 * `pinned` is written back with success and with every error but EFAULT of the
 * argument itself: the bytes of [address, address + length), from its start,
 * that are pinned on return. Errors, besides the common ones:
 *   ENOMEM     RLIMIT_MEMLOCK reached (pinned pages of the whole address space)
 *   EFAULT     no memory mapped there, or not writable with PRAWN_PIN_WRITE
 *   EOPNOTSUPP PRAWN_PIN_WRITE and a shared mapping of a file, whose pages the
 *              card would dirty behind the file system's back (memory files,
 *              shared anonymous memory and huge pages are all right)
 *   EAGAIN     the range kept changing meanwhile; try again
 *   EINTR      a signal came when `pinned` bytes were done
 */
struct prawn_pin {
	__u64 address;
	__u64 length;
	__u64 pinned; /* out */
	__u32 flags;  /* PRAWN_PIN_* */
	__u32 rsvd;
};

/*
 * Give pins back; drained: the card does not touch the pages any more through
 * the pin when this returns. Pages that were not pinned are passed over; pages
 * of an export stay pinned for the export.
 */
struct prawn_unpin {
	__u64 address;
	__u64 length;
	__u64 unpinned; /* out: bytes (whole pages) */
	__u32 flags;    /* 0 */
	__u32 rsvd;
};

/* Who may import. UID and GID: effective ids equal to the exporter's, either. */
#define PRAWN_ACCESS_ANY 0U
#define PRAWN_ACCESS_UID 1U
#define PRAWN_ACCESS_GID 2U

/* Notifications are wanted (and still only come if the sender asks too). */
#define PRAWN_EXPORT_NOTIFY 1U

/*
 * Make [address, address + length) a receive buffer under a name. The pages
 * are pinned writable until UNEXPORT or close; munmap or mremap of any of them
 * withdraws the export (software event EXPORT_WITHDRAWN). It survives fork():
 * it stays with the process that exported.
 *   EEXIST     the name is taken on this node
 *   ENOSPC     no entry left on the card
 *   EDQUOT     this process has as many exports as it may (module parameter
 *              max_exports; a process with CAP_SYS_RESOURCE has no limit)
 *   ENOMEM, EFAULT, EOPNOTSUPP, EAGAIN   as for PIN with PRAWN_PIN_WRITE
 */
struct prawn_export {
	__u64 address;
	__u64 length;     /* at least 1 */
	__u64 cookie;     /* comes back in notifications */
	__u64 node_mask;  /* bit n: node n may import; ~0: all */
	__u32 access;     /* PRAWN_ACCESS_* */
	__u32 flags;      /* PRAWN_EXPORT_* */
	__u32 export_id;  /* out */
	__u32 rsvd;
	char name[PRAWN_NAME_SIZE]; /* not empty, NUL-terminated */
};

/*
 * Withdraw an export. When it returns no data will arrive any more, and the
 * pages are unpinned unless PIN holds them. Importers are told.
 *   ENOENT  no such export of this context
 */
struct prawn_unexport {
	__u32 export_id;
	__u32 rsvd;
};

/*
 * Find an export by name on a node (one's own, too) and make it a destination
 * of commands.
 * Waits until an export of that name exists, timeout_ms at most; 0: asks once.
 *   ENOENT     no such name there (within the time)
 *   EACCES     the exporter does not allow it
 *   ETIMEDOUT  the node does not answer
 *   EHOSTDOWN  the node has been declared dead, or no driver runs there
 *   ENOSPC     no entry left on the card
 *   EDQUOT     this process has as many imports, those that it is waiting for
 *              included, as it may (module parameter max_imports)
 */
struct prawn_import {
	__u32 node;
	__u32 flags;      /* 0 */
	__u32 timeout_ms;
	__u32 rsvd;
	__u64 cookie;     /* comes back in notifications IMPORT_ERROR */
	__u64 length;     /* out: bytes of the export */
	__u32 import_id;  /* out: goes into commands */
	__u32 export_flags; /* out: PRAWN_EXPORT_* of the export */
	char name[PRAWN_NAME_SIZE];
};

/*
 * Let go of an import. Drained: no command uses it any more.
 *   ENOENT  no such import of this context
 */
struct prawn_unimport {
	__u32 import_id;
	__u32 rsvd;
};

/* What to wait for. */
#define PRAWN_WAIT_COMPLETION 1U
#define PRAWN_WAIT_NOTIFICATION 2U
#define PRAWN_WAIT_EVENT 4U /* a software event, see PRAWN_IOC_EVENT */

#define PRAWN_WAIT_FOREVER 0xffffffffffffffffULL

/*
 * Sleep until one of the things in `mask` is there. `..._seen` are the indices
 * (free running) up to which the caller has consumed the rings: an entry with
 * that index counts as news, however long ago it was written, so no wake-up is
 * lost. Returns at once if there is news. Several threads may wait.
 *   ETIMEDOUT  nothing came; EINTR a signal came; neither changes anything
 */
struct prawn_wait {
	__u32 mask;  /* PRAWN_WAIT_* */
	__u32 ready; /* out: what there is, a part of mask */
	__u32 completion_seen;
	__u32 notification_seen;
	__u64 timeout_ns; /* relative; 0: do not sleep */
	__u32 flags;      /* 0 */
	__u32 rsvd;
};

/*
 * Signal an eventfd (adding 1) when the card interrupts for that ring, or a
 * software event is queued. The card interrupts once for each ARM_NOTIFY or
 * ARM_COMPLETION written to the doorbell page: arm with the index up to which
 * you have looked, then sleep on the eventfd; an entry that came in between
 * signals at once. A signal may come without news. fd -1 detaches.
 *   EBADF, EINVAL  no descriptor, or not of an eventfd
 */
struct prawn_eventfd {
	__s32 fd;
	__u32 mask;  /* PRAWN_WAIT_*: for which this is the eventfd */
	__u32 flags; /* 0 */
	__u32 rsvd;
};

enum prawn_event_kind {
	PRAWN_EVENT_EXPORT_WITHDRAWN = 1, /* its pages went away; id: export */
	PRAWN_EVENT_IMPORT_WITHDRAWN = 2, /* the exporter took it back; id: import */
	PRAWN_EVENT_IMPORT_PEER_DOWN = 3, /* its node died or restarted */
	PRAWN_EVENT_CONTEXT_STOPPED = 4   /* status says why; close the file */
};

/*
 * Take the oldest software event of this context. The export or import keeps
 * its id, useless, until UNEXPORT or UNIMPORT.
 *   EAGAIN  there is none
 */
struct prawn_event {
	__u32 kind;    /* out: enum prawn_event_kind */
	__u32 id;      /* out: export or import */
	__u64 cookie;  /* out: of the export or import */
	__u32 status;  /* out: enum status of prawn_hw.h, or 0 */
	__u32 pending; /* out: events still waiting after this one */
	__u64 rsvd;
};

#define PRAWN_COUNTER_CARD 0U
#define PRAWN_COUNTER_CONTEXT 1U /* of this file's own context */

#define PRAWN_COUNTER_NAME_BYTES 48

/*
 * Read one counter; indices count from 0.
 *   ENOENT  no such counter: the end of the list
 */
struct prawn_counter {
	__u32 scope; /* PRAWN_COUNTER_CARD or _CONTEXT (needs SETUP) */
	__u32 index;
	__u64 value; /* out */
	__u64 rsvd;
	char name[PRAWN_COUNTER_NAME_BYTES]; /* out: "block.counter" */
};

#define PRAWN_IOC_MAGIC 0xbd
#define PRAWN_IOC_QUERY _IOR(PRAWN_IOC_MAGIC, 0x00, struct prawn_query)
#define PRAWN_IOC_SETUP _IOWR(PRAWN_IOC_MAGIC, 0x01, struct prawn_setup)
#define PRAWN_IOC_PIN _IOWR(PRAWN_IOC_MAGIC, 0x02, struct prawn_pin)
#define PRAWN_IOC_UNPIN _IOWR(PRAWN_IOC_MAGIC, 0x03, struct prawn_unpin)
#define PRAWN_IOC_EXPORT _IOWR(PRAWN_IOC_MAGIC, 0x04, struct prawn_export)
#define PRAWN_IOC_UNEXPORT _IOW(PRAWN_IOC_MAGIC, 0x05, struct prawn_unexport)
#define PRAWN_IOC_IMPORT _IOWR(PRAWN_IOC_MAGIC, 0x06, struct prawn_import)
#define PRAWN_IOC_UNIMPORT _IOW(PRAWN_IOC_MAGIC, 0x07, struct prawn_unimport)
#define PRAWN_IOC_WAIT _IOWR(PRAWN_IOC_MAGIC, 0x08, struct prawn_wait)
#define PRAWN_IOC_EVENTFD _IOW(PRAWN_IOC_MAGIC, 0x09, struct prawn_eventfd)
#define PRAWN_IOC_EVENT _IOR(PRAWN_IOC_MAGIC, 0x0a, struct prawn_event)
#define PRAWN_IOC_COUNTER _IOWR(PRAWN_IOC_MAGIC, 0x0b, struct prawn_counter)
/* 0x10 to 0x1f: proxy pages and automatic update */

#if defined(__cplusplus)
#define PRAWN_UAPI_SIZE(type, bytes) \
	static_assert(sizeof(struct type) == (bytes), #type)
#else
#define PRAWN_UAPI_SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), #type)
#endif
PRAWN_UAPI_SIZE(prawn_region, 16);
PRAWN_UAPI_SIZE(prawn_query, 232);
PRAWN_UAPI_SIZE(prawn_setup, 152);
PRAWN_UAPI_SIZE(prawn_pin, 32);
PRAWN_UAPI_SIZE(prawn_unpin, 32);
PRAWN_UAPI_SIZE(prawn_export, 112);
PRAWN_UAPI_SIZE(prawn_unexport, 8);
PRAWN_UAPI_SIZE(prawn_import, 104);
PRAWN_UAPI_SIZE(prawn_unimport, 8);
PRAWN_UAPI_SIZE(prawn_wait, 32);
PRAWN_UAPI_SIZE(prawn_eventfd, 16);
PRAWN_UAPI_SIZE(prawn_event, 32);
PRAWN_UAPI_SIZE(prawn_counter, 72);
#undef PRAWN_UAPI_SIZE

#endif
