/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside prawn.ko.
 *
 * Locking order, outermost first:
 *
 *   prawn_dev.srcu       (read) every file operation; remove and reset wait
 *   prawn_dev.file_lock  list of open files; held while remove tears down
 *   prawn_ctx.op_lock    SETUP, PIN, UNPIN, EXPORT, UNEXPORT of one context
 *   mm->mmap_lock
 *   prawn_dev.rdv_lock   names, exports, imports of the card (not under
 *                        mmap_lock, never taken by a notifier)
 *   prawn_ctx.table_lock translation table; taken by mmu notifiers, therefore
 *                        nothing below may allocate with GFP_KERNEL, fault,
 *                        or take mmap_lock while holding it
 *   (admin ring: sleeps for an acknowledgement, takes no other mutex)
 *   prawn_dev.id_lock, prawn_ctx.event_lock, prawn_admin.lock (spinlocks,
 *                        irq-safe; id_lock before event_lock)
 *
 * The PTP clock takes none of them: prawn_ptp.c says why.
 *
 * The shrinker only tries file_lock and table_lock. Interrupt handlers take the
 * spinlocks alone.
 *
 * Life: a prawn_dev lives until its last open file is closed; "gone" says that
 * the device behind it was removed, "dead" that the card no longer answers.
 * Once dead, bus mastering is off, so that pages and rings may be freed though
 * the card never said that it is done with them.
 */

#ifndef PRAWN_H
#define PRAWN_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#ifndef CONFIG_64BIT
#error "prawn.ko needs 64-bit register accesses"
#endif

#include <uapi/prawn.h>
#include "prawn_hw.h"
#include "prawn_compat.h"

#define PRAWN_KERNEL_CONTEXT 0xffff

#define PRAWN_ADMIN_LOG2 6
#define PRAWN_ADMIN_SLOTS (1 << PRAWN_ADMIN_LOG2)
#define PRAWN_EVENT_LOG2 6
#define PRAWN_MGMT_SLOTS (PAGE_SIZE / PRAWN_MGMT_MAX)
#define PRAWN_BATCH 16

#define PRAWN_CHUNK_SHIFT 21 /* what one leaf of a table covers */
#define PRAWN_CHUNK_PAGES 512

struct prawn_ring {
	void *cpu;
	dma_addr_t dma;
	size_t size;
};

struct prawn_admin {
	spinlock_t lock; /* producer, busy, ring */
	struct prawn_ring ring;
	struct prawn_ring acks;
	u32 producer;
	DECLARE_BITMAP(busy, PRAWN_ADMIN_SLOTS); /* slots not collected yet */
	wait_queue_head_t wait;
	bool up;
	atomic64_t commands;
	atomic64_t slept;
};

/* What the driver knows of another node. */
struct prawn_peer {
	u16 epoch;
	bool down;
	bool declared; /* dead, by us: the card wants to hear when that ends */
	unsigned int missed; /* pings without an answer */
};

struct prawn_dev {
	struct device dev; /* owns this structure */
	struct cdev cdev;
	struct srcu_struct srcu; /* file operations under way */
	struct pci_dev *pdev;
	int minor;
	void __iomem *bar0;
	void __iomem *bar2;
	bool gone;
	bool dead;
	bool resetting;
	bool msix;
	unsigned int vectors;
	unsigned int irqs; /* handlers installed, for unwinding */
	struct prawn_vector {
		struct prawn_dev *pd;
		u32 index;
	} vector[PRAWN_VECTORS];

	u64 features;
	u32 abi;
	u16 node, nodes, epoch;
	u32 contexts, opt_entries, ipt_entries;

	struct prawn_admin admin;
	struct prawn_ring events;
	u32 event_head;
	struct workqueue_struct *wq; /* ordered: events, withdrawals */
	struct work_struct event_work;

	struct prawn_ring mgmt; /* messages on their way out */
	unsigned long mgmt_busy;
	wait_queue_head_t mgmt_wait;

	struct mutex file_lock;
	struct list_head files;
	spinlock_t id_lock; /* by_id */
	struct prawn_ctx *by_id[PRAWN_CONTEXTS];

	struct mutex rdv_lock;
	DECLARE_HASHTABLE(names, 8);
	struct xarray exports; /* by IPT entry */
	struct xarray imports; /* by OPT entry */
	u32 next_import; /* entries are reused as late as can be */
	struct xarray importers; /* by node and their OPT entry */
	struct list_head withdrawals;
	unsigned int withdrawal_count;
	struct delayed_work withdraw_work;
	struct delayed_work ping_work;
	struct delayed_work watch_work;
	u32 transaction;
	struct prawn_peer peer[PRAWN_MAX_NODES];
	wait_queue_head_t rdv_wait;

	struct shrinker *shrinker;
	atomic_long_t reclaimable;

	struct ptp_clock_info ptp_info;
	struct ptp_clock *ptp; /* NULL: none */
	u32 ptp_index; /* N of /dev/ptpN, or PRAWN_NO_PTP */

	struct mutex counter_lock;
	struct dentry *debugfs;
};

/* A page of the card's radix tree, with what the kernel needs to keep it. */
struct prawn_table {
	__le64 *entries;
	dma_addr_t dma;
	struct prawn_table *parent;
	struct prawn_table **child; /* NULL in a leaf */
	u16 index; /* in parent */
	u16 used;  /* children */
};

#define PRAWN_REC_WRITE 1u  /* pinned writable */
#define PRAWN_REC_PIN 2u    /* PIN holds it */
#define PRAWN_REC_ZAPPED 4u /* entry invalid and drained; to be unpinned */
#define PRAWN_REC_VERIFY 8u /* exported, and the mapping may have changed */

struct prawn_rec {
	struct page *page;
	u64 born;    /* ctx->births at its installation */
	u32 exports; /* exports that hold it */
	u32 flags;
};

/* 2 MiB of a process's address space: one leaf, one notifier. */
struct prawn_chunk {
	struct mmu_interval_notifier notifier;
	struct prawn_ctx *ctx;
	struct prawn_table leaf;
	unsigned long start;
	struct list_head lru;
	unsigned int live, zapped, verify;
	struct prawn_rec rec[PRAWN_CHUNK_PAGES];
};

/* A software event; each object has its own, so that none can be lost. */
struct prawn_soft_event {
	struct list_head link;
	u32 kind, id, status;
	u64 cookie;
};

enum { PRAWN_EFD_COMPLETION, PRAWN_EFD_NOTIFICATION, PRAWN_EFD_EVENT,
       PRAWN_EFDS };

/* What the contexts of one process may have a limited number of. */
enum { PRAWN_QUOTA_EXPORTS, PRAWN_QUOTA_IMPORTS, PRAWN_QUOTAS };

struct prawn_ctx {
	struct kref ref;
	struct prawn_dev *pd;
	struct mm_struct *mm; /* mmgrab: compare, account; mmget to use */
	struct list_head link; /* pd->files */
	struct address_space *mapping;

	struct mutex op_lock;
	u32 id;
	bool up;   /* set up and not torn down; changed under both mutexes */
	bool lost; /* reset took it */
	u32 error; /* status that stopped it, or 0 */
	u32 command_log2, notify_log2, vector;
	struct prawn_ring ring[3]; /* by prawn_region_index */

	struct mutex table_lock;
	struct prawn_table *top;
	struct xarray chunks; /* by address >> PRAWN_CHUNK_SHIFT */
	struct list_head lru;
	unsigned int empty_chunks;
	unsigned long pinned; /* pages charged */
	u64 births; /* pages installed so far */
	u64 zaps, verified, retries;
	struct work_struct reap_work;
	struct list_head exports;

	struct list_head imports; /* rdv_lock */
	unsigned int held[PRAWN_QUOTAS]; /* rdv_lock */

	wait_queue_head_t wait;
	spinlock_t event_lock;
	struct list_head events;
	unsigned int event_count;
	struct prawn_soft_event stopped;
	struct eventfd_ctx *efd[PRAWN_EFDS];
};

/* A number of another node's names one import, so one of these at most. */
struct prawn_importer {
	struct list_head link; /* prawn_xport.importers */
	u16 node, epoch;
	u32 import_id, transaction;
};

struct prawn_xport {
	struct list_head link; /* ctx->exports, under table_lock */
	struct hlist_node name_link;
	struct prawn_ctx *ctx;
	u32 id;
	u64 key, address, length, cookie, node_mask;
	u32 access, flags, uid, gid;
	bool live; /* can be imported; rdv_lock */
	bool lost; /* a page of it was unmapped; table_lock */
	u64 born;  /* ctx->births when all pages were claimed */
	struct list_head importers;
	struct prawn_soft_event event;
	char name[PRAWN_NAME_SIZE];
};

struct prawn_mport {
	struct list_head link; /* ctx->imports */
	struct prawn_ctx *ctx;
	u32 id, export_id, transaction;
	u16 node, epoch;
	bool answered;    /* a reply has come */
	bool established; /* usable, or was */
	bool invalid;     /* withdrawn, or the node went away */
	bool on_card;     /* the OPT entry is set */
	u16 answer;       /* errno of the reply */
	u32 flags;
	u64 key, length, cookie;
	struct prawn_soft_event event;
};

/* prawn_hw.c: registers, reset, counters */
static inline u32 prawn_read32(struct prawn_dev *pd, u32 reg)
{
	return readl(pd->bar0 + reg);
}

static inline u64 prawn_read64(struct prawn_dev *pd, u32 reg)
{
	return readq(pd->bar0 + reg);
}

static inline void prawn_write32(struct prawn_dev *pd, u32 reg, u32 value)
{
	writel(value, pd->bar0 + reg);
}

static inline void prawn_write64(struct prawn_dev *pd, u32 reg, u64 value)
{
	writeq(value, pd->bar0 + reg);
}

int prawn_hw_identify(struct prawn_dev *pd);
int prawn_hw_reset(struct prawn_dev *pd);
void prawn_hw_start(struct prawn_dev *pd);
void prawn_hw_stop(struct prawn_dev *pd);
bool prawn_hw_vanished(struct prawn_dev *pd);
void prawn_kill(struct prawn_dev *pd, const char *why);
void prawn_watch_work(struct work_struct *work);
void prawn_watch_start(struct prawn_dev *pd);
void prawn_wake_all(struct prawn_dev *pd);
int prawn_usable(struct prawn_dev *pd);
int prawn_counter_count(struct prawn_dev *pd, bool context);
int prawn_counter_read(struct prawn_dev *pd, int context, u32 index, u64 *value,
		       char *name);
int prawn_ring_alloc(struct prawn_dev *pd, struct prawn_ring *ring, size_t size);
void prawn_ring_free(struct prawn_dev *pd, struct prawn_ring *ring);

/* prawn_admin.c */
struct prawn_batch {
	struct prawn_dev *pd;
	u32 index[PRAWN_BATCH];
	unsigned int head, count;
	int error; /* the first one */
};

int prawn_admin_init(struct prawn_dev *pd);
void prawn_admin_reinit(struct prawn_dev *pd);
void prawn_admin_exit(struct prawn_dev *pd);
int prawn_admin(struct prawn_dev *pd, const struct prawn_admin_command *cmd);
void prawn_batch_init(struct prawn_batch *batch, struct prawn_dev *pd);
void prawn_batch_add(struct prawn_batch *batch,
		     const struct prawn_admin_command *cmd);
int prawn_batch_end(struct prawn_batch *batch);
void prawn_grant(struct prawn_batch *batch, u32 context, dma_addr_t dma,
		 u64 pages, bool write);
void prawn_revoke(struct prawn_batch *batch, u32 context, dma_addr_t dma,
		  u64 pages);
int prawn_grant_one(struct prawn_dev *pd, u32 context, dma_addr_t dma,
		    size_t size, bool write);
void prawn_revoke_one(struct prawn_dev *pd, u32 context, dma_addr_t dma,
		      size_t size);

/* prawn_irq.c */
int prawn_irq_init(struct prawn_dev *pd);
void prawn_irq_exit(struct prawn_dev *pd);
u32 prawn_irq_vector(struct prawn_dev *pd, u32 context);

/* prawn_event.c */
int prawn_event_init(struct prawn_dev *pd);
void prawn_event_exit(struct prawn_dev *pd);

/* prawn_cdev.c */
int prawn_cdev_register(void);
void prawn_cdev_unregister(void);
struct prawn_dev *prawn_dev_alloc(struct pci_dev *pdev);
int prawn_dev_publish(struct prawn_dev *pd);
void prawn_dev_unpublish(struct prawn_dev *pd);
void prawn_files_down(struct prawn_dev *pd);

/* prawn_ctx.c */
struct prawn_ctx *prawn_ctx_alloc(struct prawn_dev *pd);
void prawn_ctx_put(struct prawn_ctx *ctx);
int prawn_ctx_setup(struct prawn_ctx *ctx, struct prawn_setup *arg);
void prawn_ctx_down(struct prawn_ctx *ctx);
void prawn_ctx_regions(struct prawn_ctx *ctx, struct prawn_region *region);
void prawn_ctx_kick(struct prawn_ctx *ctx);
void prawn_ctx_error(struct prawn_dev *pd, u32 id, u32 status);
int prawn_quota(struct prawn_ctx *ctx, unsigned int what);

/* prawn_wait.c */
int prawn_wait(struct prawn_ctx *ctx, struct prawn_wait *arg);
int prawn_eventfd(struct prawn_ctx *ctx, const struct prawn_eventfd *arg);
int prawn_event_take(struct prawn_ctx *ctx, struct prawn_event *arg);
void prawn_event_queue(struct prawn_ctx *ctx, struct prawn_soft_event *event);
void prawn_event_drop(struct prawn_ctx *ctx, struct prawn_soft_event *event);

/* prawn_table.c */
int prawn_table_init(struct prawn_ctx *ctx);
void prawn_table_exit(struct prawn_ctx *ctx);
struct prawn_chunk *prawn_chunk_get(struct prawn_ctx *ctx, unsigned long va);
struct prawn_chunk *prawn_chunk_find(struct prawn_ctx *ctx, unsigned long va);
void prawn_chunk_trim(struct prawn_ctx *ctx);
void prawn_entry_set(struct prawn_chunk *chunk, unsigned int i, u64 value);

static inline u64 prawn_entry(struct prawn_chunk *chunk, unsigned int i)
{
	return le64_to_cpu(chunk->leaf.entries[i]);
}

/* prawn_pin.c */
int prawn_pin(struct prawn_ctx *ctx, struct prawn_pin *arg);
int prawn_unpin(struct prawn_ctx *ctx, struct prawn_unpin *arg);
int prawn_claim(struct prawn_ctx *ctx, u64 address, u64 length, bool write,
		bool exported, u64 *done);
void prawn_unclaim(struct prawn_ctx *ctx, u64 address, u64 length, u64 *pages);
void prawn_unclaim_export(struct prawn_ctx *ctx, u64 address, u64 length,
			  u64 born);
void prawn_chunk_reap(struct prawn_chunk *chunk);
int prawn_range_check(u64 address, u64 length);

/* prawn_notifier.c */
extern const struct mmu_interval_notifier_ops prawn_notifier_ops;
unsigned int prawn_zap(struct prawn_chunk *chunk, unsigned int first,
		       unsigned int last, bool exported_too);
void prawn_reap_work(struct work_struct *work);
int prawn_shrinker_init(struct prawn_dev *pd);

/* prawn_mgmt.c */
int prawn_mgmt_init(struct prawn_dev *pd);
void prawn_mgmt_exit(struct prawn_dev *pd);
int prawn_mgmt_send(struct prawn_dev *pd, u16 node, const void *msg, u32 bytes);
void prawn_mgmt_simple(struct prawn_dev *pd, u16 node, u8 type, u16 status,
		       u32 transaction, u32 export_id, u32 import_id);
void prawn_mgmt_receive(struct prawn_dev *pd, u16 node, u16 epoch,
			const void *data, u32 bytes);
void prawn_peer_changed(struct prawn_dev *pd, u16 node, u16 epoch, bool up);
void prawn_ping_work(struct work_struct *work);
void prawn_ping_start(struct prawn_dev *pd);
int prawn_peer_control(struct prawn_dev *pd, u16 node, bool welcome);
bool prawn_name_ok(const char *name);

/* prawn_export.c */
int prawn_export(struct prawn_ctx *ctx, struct prawn_export *arg);
int prawn_unexport(struct prawn_ctx *ctx, u32 id);
void prawn_exports_hide(struct prawn_ctx *ctx);
void prawn_exports_free(struct prawn_ctx *ctx);
void prawn_exports_withdraw_lost(struct prawn_ctx *ctx);
void prawn_export_request(struct prawn_dev *pd, u16 node, u16 epoch,
			  const struct prawn_mgmt_import_request *msg);
void prawn_export_released(struct prawn_dev *pd, u16 node,
			   const struct prawn_mgmt_header *msg);
void prawn_export_acked(struct prawn_dev *pd, u16 node,
			const struct prawn_mgmt_header *msg);
void prawn_exports_peer(struct prawn_dev *pd, u16 node, u16 epoch, bool up);
void prawn_withdraw_work(struct work_struct *work);
void prawn_withdrawals_drop(struct prawn_dev *pd);

/* prawn_import.c */
int prawn_import(struct prawn_ctx *ctx, struct prawn_import *arg);
int prawn_unimport(struct prawn_ctx *ctx, u32 id);
void prawn_imports_free(struct prawn_ctx *ctx);
void prawn_import_reply(struct prawn_dev *pd, u16 node, u16 epoch,
			const struct prawn_mgmt_import_reply *msg);
void prawn_import_withdrawn(struct prawn_dev *pd, u16 node,
			    const struct prawn_mgmt_header *msg);
void prawn_imports_peer(struct prawn_dev *pd, u16 node, u16 epoch, bool up);
bool prawn_imports_from(struct prawn_dev *pd, u16 node);

/* prawn_ptp.c */
void prawn_ptp_init(struct prawn_dev *pd);
void prawn_ptp_exit(struct prawn_dev *pd);

/* prawn_debugfs.c */
void prawn_debugfs_init(void);
void prawn_debugfs_exit(void);
void prawn_debugfs_add(struct prawn_dev *pd);
void prawn_debugfs_remove(struct prawn_dev *pd);

#endif
