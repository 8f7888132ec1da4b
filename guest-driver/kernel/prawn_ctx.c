// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context: rings, table, and its place on the card. Set up once, torn down
 * once, by the release of its file, the removal of the device, or a reset.
 */

#include <linux/capability.h>
#include <linux/io.h>
#include <linux/moduleparam.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "prawn.h"

static unsigned int max_exports = 256;
module_param(max_exports, uint, 0644);
MODULE_PARM_DESC(max_exports,
		 "exports that one process may have (0: all the card has; CAP_SYS_RESOURCE is exempt)");

static unsigned int max_imports = 256;
module_param(max_imports, uint, 0644);
MODULE_PARM_DESC(max_imports,
		 "imports that one process may have (0: all the card has; CAP_SYS_RESOURCE is exempt)");

/* Which of the rings the card writes. */
static bool card_writes(unsigned int ring)
{
	return ring != PRAWN_REGION_COMMAND;
}

struct prawn_ctx *prawn_ctx_alloc(struct prawn_dev *pd)
{
	struct prawn_ctx *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return NULL;
	kref_init(&ctx->ref);
	ctx->pd = pd;
	get_device(&pd->dev);
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	ctx->id = PRAWN_NO_CONTEXT;
	INIT_LIST_HEAD(&ctx->link);
	mutex_init(&ctx->op_lock);
	mutex_init(&ctx->table_lock);
	xa_init(&ctx->chunks);
	INIT_LIST_HEAD(&ctx->lru);
	INIT_WORK(&ctx->reap_work, prawn_reap_work);
	INIT_LIST_HEAD(&ctx->exports);
	INIT_LIST_HEAD(&ctx->imports);
	init_waitqueue_head(&ctx->wait);
	spin_lock_init(&ctx->event_lock);
	INIT_LIST_HEAD(&ctx->events);
	INIT_LIST_HEAD(&ctx->stopped.link);
	return ctx;
}

static void ctx_free(struct kref *ref)
{
	struct prawn_ctx *ctx = container_of(ref, struct prawn_ctx, ref);
	int i;

	for (i = 0; i < PRAWN_EFDS; i++)
		if (ctx->efd[i])
			eventfd_ctx_put(ctx->efd[i]);
	mmdrop(ctx->mm);
	put_device(&ctx->pd->dev);
	kfree(ctx);
}

void prawn_ctx_put(struct prawn_ctx *ctx)
{
	kref_put(&ctx->ref, ctx_free);
}

/*
 * Every context a vector interrupts is in by_id from before it is enabled until
 * after it is disabled.
 */
static int id_get(struct prawn_ctx *ctx)
{
	struct prawn_dev *pd = ctx->pd;
	unsigned long flags;
	u32 id;

	spin_lock_irqsave(&pd->id_lock, flags);
	for (id = 0; id < pd->contexts && pd->by_id[id]; id++)
		;
	if (id < pd->contexts) {
		ctx->id = id;
		ctx->vector = prawn_irq_vector(pd, id);
		pd->by_id[id] = ctx;
	}
	spin_unlock_irqrestore(&pd->id_lock, flags);
	return id < pd->contexts ? 0 : -ENOSPC;
}

static void id_put(struct prawn_ctx *ctx)
{
	struct prawn_dev *pd = ctx->pd;
	unsigned long flags;

	spin_lock_irqsave(&pd->id_lock, flags);
	pd->by_id[ctx->id] = NULL;
	spin_unlock_irqrestore(&pd->id_lock, flags);
	ctx->id = PRAWN_NO_CONTEXT;
}

static void rings_free(struct prawn_ctx *ctx)
{
	struct prawn_batch batch;
	int i;

	prawn_batch_init(&batch, ctx->pd);
	for (i = 0; i < ARRAY_SIZE(ctx->ring); i++)
		if (ctx->ring[i].cpu)
			prawn_revoke(&batch, PRAWN_KERNEL_CONTEXT,
				     ctx->ring[i].dma,
				     ctx->ring[i].size >> PAGE_SHIFT);
	prawn_batch_end(&batch);
	for (i = 0; i < ARRAY_SIZE(ctx->ring); i++)
		prawn_ring_free(ctx->pd, &ctx->ring[i]);
}

static int rings_alloc(struct prawn_ctx *ctx)
{
	const size_t size[] = {
		sizeof(struct prawn_command) << ctx->command_log2,
		sizeof(struct prawn_completion) << ctx->command_log2,
		sizeof(struct prawn_notification) << ctx->notify_log2,
	};
	struct prawn_batch batch;
	int i, err = 0;

	prawn_batch_init(&batch, ctx->pd);
	for (i = 0; i < ARRAY_SIZE(ctx->ring) && !err; i++) {
		err = prawn_ring_alloc(ctx->pd, &ctx->ring[i], size[i]);
		if (!err)
			prawn_grant(&batch, PRAWN_KERNEL_CONTEXT,
				    ctx->ring[i].dma,
				    ctx->ring[i].size >> PAGE_SHIFT,
				    card_writes(i));
	}
	if (prawn_batch_end(&batch) && !err)
		err = batch.error;
	if (err)
		rings_free(ctx);
	return err;
}

static int enable(struct prawn_ctx *ctx)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_CONTEXT_ENABLE,
		.context = cpu_to_le16(ctx->id),
		.index = cpu_to_le32(ctx->vector),
		.a = cpu_to_le64(ctx->ring[PRAWN_REGION_COMMAND].dma),
		.b = cpu_to_le64(ctx->ring[PRAWN_REGION_COMPLETION].dma),
		.c = cpu_to_le64(ctx->ring[PRAWN_REGION_NOTIFICATION].dma),
		.d = cpu_to_le64(ctx->top->dma),
		.e = cpu_to_le64(ctx->command_log2 | ctx->notify_log2 << 8),
	};

	return prawn_admin(ctx->pd, &cmd);
}

/* Acknowledged when no DMA for the context is in flight. */
static void disable(struct prawn_ctx *ctx)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_CONTEXT_DISABLE,
		.context = cpu_to_le16(ctx->id),
	};
	int err = prawn_admin(ctx->pd, &cmd);

	/* Memory is freed next: without the card's word its DMA must go off. */
	if (err)
		prawn_kill(ctx->pd, "context not disabled");
}

static void down_locked(struct prawn_ctx *ctx)
{
	prawn_exports_hide(ctx); /* no new importer */
	/*
	 * A notifier waits: until the card has forgotten the context, pages may
	 * not be freed; from then on there is nothing to invalidate any more,
	 * and the card would refuse it.
	 */
	mutex_lock(&ctx->table_lock);
	disable(ctx);
	ctx->up = false;
	mutex_unlock(&ctx->table_lock);
	prawn_imports_free(ctx);
	prawn_exports_free(ctx);
	prawn_table_exit(ctx);
	id_put(ctx);
	rings_free(ctx);
}

/* The card forgets the context; all its memory goes back. Any number of times. */
void prawn_ctx_down(struct prawn_ctx *ctx)
{
	mutex_lock(&ctx->op_lock);
	if (ctx->up)
		down_locked(ctx);
	mutex_unlock(&ctx->op_lock);
	/* takes op_lock; finds nothing to do any more */
	cancel_work_sync(&ctx->reap_work);
}

int prawn_ctx_setup(struct prawn_ctx *ctx, struct prawn_setup *arg)
{
	int err;

	if (arg->flags || arg->rsvd ||
	    arg->command_log2 < PRAWN_RING_LOG2_MIN ||
	    arg->command_log2 > PRAWN_RING_LOG2_MAX ||
	    arg->notify_log2 < PRAWN_RING_LOG2_MIN ||
	    arg->notify_log2 > PRAWN_RING_LOG2_MAX)
		return -EINVAL;
	if (ctx->up)
		return -EALREADY;

	ctx->command_log2 = arg->command_log2;
	ctx->notify_log2 = arg->notify_log2;
	err = id_get(ctx);
	if (err)
		return err;
	err = rings_alloc(ctx);
	if (err)
		goto err_id;
	err = prawn_table_init(ctx);
	if (err)
		goto err_rings;
	err = enable(ctx);
	if (err)
		goto err_table;
	mutex_lock(&ctx->table_lock);
	ctx->up = true;
	mutex_unlock(&ctx->table_lock);

	arg->context = ctx->id;
	arg->vector = ctx->vector;
	prawn_ctx_regions(ctx, arg->region);
	return 0;

err_table:
	prawn_table_exit(ctx);
err_rings:
	rings_free(ctx);
err_id:
	id_put(ctx);
	return err;
}

/* Where a process finds them; kept apart by the upper half of the offset. */
void prawn_ctx_regions(struct prawn_ctx *ctx, struct prawn_region *region)
{
	unsigned int i;

	memset(region, 0, PRAWN_REGIONS * sizeof(*region));
	for (i = 0; i < PRAWN_REGIONS; i++) {
		region[i].offset = (u64)i << 32;
		if (!ctx->up)
			continue;
		if (i < ARRAY_SIZE(ctx->ring))
			region[i].size = ctx->ring[i].size;
		else if (i == PRAWN_REGION_DOORBELL)
			region[i].size = PRAWN_PAGE_SIZE;
	}
}

/*
 * rdv_lock. -EDQUOT if the process, in all its contexts together, has as many
 * as it may: the tables are the card's, and all processes live on them.
 */
int prawn_quota(struct prawn_ctx *ctx, unsigned int what)
{
	unsigned int limit = what == PRAWN_QUOTA_EXPORTS ?
				     READ_ONCE(max_exports) :
				     READ_ONCE(max_imports);
	struct prawn_dev *pd = ctx->pd;
	unsigned int i, sum = 0;
	unsigned long flags;

	spin_lock_irqsave(&pd->id_lock, flags);
	for (i = 0; i < pd->contexts; i++)
		if (pd->by_id[i] && pd->by_id[i]->mm == ctx->mm)
			sum += pd->by_id[i]->held[what];
	spin_unlock_irqrestore(&pd->id_lock, flags);
	return limit && sum >= limit && !capable(CAP_SYS_RESOURCE) ? -EDQUOT : 0;
}

/* The card has stopped a context for what its process did. */
void prawn_ctx_error(struct prawn_dev *pd, u32 id, u32 status)
{
	struct prawn_ctx *ctx = NULL;
	unsigned long flags;

	if (id >= pd->contexts ||
	    !(readl(pd->bar2 + id * PRAWN_PAGE_SIZE + PRAWN_DOORBELL_STATE) &
	      PRAWN_STATE_ERROR_MASK))
		return; /* an earlier owner of the id */
	spin_lock_irqsave(&pd->id_lock, flags);
	if (pd->by_id[id]) {
		ctx = pd->by_id[id];
		kref_get(&ctx->ref);
	}
	spin_unlock_irqrestore(&pd->id_lock, flags);
	if (!ctx)
		return;
	WRITE_ONCE(ctx->error, status ? status : PRAWN_STATUS_CANCELLED);
	ctx->stopped.kind = PRAWN_EVENT_CONTEXT_STOPPED;
	ctx->stopped.id = id;
	ctx->stopped.status = status;
	prawn_event_queue(ctx, &ctx->stopped);
	prawn_ctx_put(ctx);
}
