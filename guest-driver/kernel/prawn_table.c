// SPDX-License-Identifier: GPL-2.0-only
/*
 * The translation table of a context: four levels of pages that the card walks
 * by DMA. The kernel's shadow of it ends in chunks, one for each 2 MiB of the
 * process in which something is or was pinned. A chunk has a leaf, a record for
 * each page, and its own mmu interval notifier: an invalidation elsewhere in
 * the address space neither comes here nor makes a PIN here try again, and
 * notifiers need not be split and merged with the ranges that are pinned.
 *
 * Chunks without pages are kept, some of them, and go by prawn_chunk_trim().
 */

#include <linux/dma-mapping.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "prawn.h"

#define EMPTY_MAX 32

static unsigned int index_at(unsigned long va, int level)
{
	return va >> (PAGE_SHIFT + 9 * level) & (PRAWN_CHUNK_PAGES - 1);
}

static int table_alloc(struct prawn_ctx *ctx, struct prawn_table *table)
{
	struct device *dev = &ctx->pd->pdev->dev;

	table->entries = (__le64 *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!table->entries)
		return -ENOMEM;
	table->dma = dma_map_page(dev, virt_to_page(table->entries), 0,
				  PAGE_SIZE, DMA_TO_DEVICE);
	if (dma_mapping_error(dev, table->dma))
		goto err_page;
	if (prawn_grant_one(ctx->pd, PRAWN_KERNEL_CONTEXT, table->dma,
			    PAGE_SIZE, false))
		goto err_map;
	return 0;

err_map:
	dma_unmap_page(dev, table->dma, PAGE_SIZE, DMA_TO_DEVICE);
err_page:
	free_page((unsigned long)table->entries);
	table->entries = NULL;
	return -ENOMEM;
}

static void table_free(struct prawn_ctx *ctx, struct prawn_table *table)
{
	if (!table->entries)
		return;
	prawn_revoke_one(ctx->pd, PRAWN_KERNEL_CONTEXT, table->dma, PAGE_SIZE);
	dma_unmap_page(&ctx->pd->pdev->dev, table->dma, PAGE_SIZE,
		       DMA_TO_DEVICE);
	free_page((unsigned long)table->entries);
	table->entries = NULL;
}

static struct prawn_table *inner_alloc(struct prawn_ctx *ctx)
{
	struct prawn_table *table;

	table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);
	if (!table)
		return NULL;
	table->child = kcalloc(PRAWN_CHUNK_PAGES, sizeof(*table->child),
			       GFP_KERNEL_ACCOUNT);
	if (!table->child || table_alloc(ctx, table)) {
		kfree(table->child);
		kfree(table);
		return NULL;
	}
	return table;
}

static void inner_free(struct prawn_ctx *ctx, struct prawn_table *table)
{
	table_free(ctx, table);
	kfree(table->child);
	kfree(table);
}

static void entry_write(struct prawn_ctx *ctx, struct prawn_table *table,
			unsigned int i, u64 value)
{
	WRITE_ONCE(table->entries[i], cpu_to_le64(value));
	dma_sync_single_for_device(&ctx->pd->pdev->dev,
				   table->dma + i * sizeof(__le64),
				   sizeof(__le64), DMA_TO_DEVICE);
}

/* Before the next admin command or doorbell, which order it. */
void prawn_entry_set(struct prawn_chunk *chunk, unsigned int i, u64 value)
{
	entry_write(chunk->ctx, &chunk->leaf, i, value);
}

static void hang(struct prawn_ctx *ctx, struct prawn_table *parent,
		 unsigned int i, struct prawn_table *table)
{
	table->parent = parent;
	table->index = i;
	parent->child[i] = table;
	parent->used++;
	entry_write(ctx, parent, i,
		    PRAWN_TABLE_ENTRY_VALID_MASK | table->dma);
}

/* Level 1, the parent of leaves, of an address; made if need be. */
static struct prawn_table *parent_of(struct prawn_ctx *ctx, unsigned long va)
{
	struct prawn_table *table = ctx->top;
	int level;

	for (level = PRAWN_TABLE_LEVELS - 1; level > 1; level--) {
		unsigned int i = index_at(va, level);

		if (!table->child[i]) {
			struct prawn_table *below = inner_alloc(ctx);

			if (!below)
				return NULL;
			hang(ctx, table, i, below);
		}
		table = table->child[i];
	}
	return table;
}

struct prawn_chunk *prawn_chunk_find(struct prawn_ctx *ctx, unsigned long va)
{
	return xa_load(&ctx->chunks, va >> PRAWN_CHUNK_SHIFT);
}

/*
 * op_lock. The chunk of an address; the caller will pin something in it.
 * A new chunk's notifier works before the leaf is hung into the table.
 */
struct prawn_chunk *prawn_chunk_get(struct prawn_ctx *ctx, unsigned long va)
{
	struct prawn_chunk *chunk = prawn_chunk_find(ctx, va);
	struct prawn_table *parent;
	int err = -ENOMEM;

	if (chunk)
		return chunk;
	chunk = kvzalloc(sizeof(*chunk), GFP_KERNEL_ACCOUNT);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	chunk->ctx = ctx;
	chunk->start = va & ~((1ul << PRAWN_CHUNK_SHIFT) - 1);
	INIT_LIST_HEAD(&chunk->lru);
	parent = parent_of(ctx, va);
	if (!parent)
		goto err_chunk;
	err = table_alloc(ctx, &chunk->leaf);
	if (err)
		goto err_chunk;
	err = mmu_interval_notifier_insert(&chunk->notifier, ctx->mm,
					   chunk->start,
					   1ul << PRAWN_CHUNK_SHIFT,
					   &prawn_notifier_ops);
	if (err)
		goto err_leaf;
	err = xa_err(xa_store(&ctx->chunks, va >> PRAWN_CHUNK_SHIFT, chunk,
			      GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_notifier;
	mutex_lock(&ctx->table_lock);
	list_add_tail(&chunk->lru, &ctx->lru);
	ctx->empty_chunks++;
	hang(ctx, parent, index_at(va, 1), &chunk->leaf);
	mutex_unlock(&ctx->table_lock);
	return chunk;

err_notifier:
	mmu_interval_notifier_remove(&chunk->notifier);
err_leaf:
	table_free(ctx, &chunk->leaf);
err_chunk:
	kvfree(chunk);
	return ERR_PTR(err);
}

static void chunk_free(struct prawn_chunk *chunk)
{
	mmu_interval_notifier_remove(&chunk->notifier);
	table_free(chunk->ctx, &chunk->leaf);
	kvfree(chunk);
}

/* Takes a table out of its parents; those left empty go to the list too. */
static void unhang(struct prawn_ctx *ctx, struct prawn_table *table,
		   struct prawn_table **inner)
{
	while (table->parent) {
		struct prawn_table *parent = table->parent;

		entry_write(ctx, parent, table->index, 0);
		parent->child[table->index] = NULL;
		table->parent = NULL;
		if (--parent->used || !parent->parent)
			return;
		/* `child` of an unhung table links the list */
		parent->child[0] = *inner;
		*inner = parent;
		table = parent;
	}
}

static int flush_all(struct prawn_ctx *ctx)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE,
		.context = cpu_to_le16(ctx->id),
	};
	int err = prawn_admin(ctx->pd, &cmd);

	if (err)
		prawn_kill(ctx->pd, "translation table not released");
	return err;
}

/*
 * op_lock. When many chunks are empty, gives them all back, with one flush of
 * the context's translations: their table pages must be out of use before.
 */
void prawn_chunk_trim(struct prawn_ctx *ctx)
{
	struct prawn_table *inner = NULL;
	struct prawn_chunk *chunk, *next;
	LIST_HEAD(empty);

	if (READ_ONCE(ctx->empty_chunks) <= EMPTY_MAX)
		return;
	mutex_lock(&ctx->table_lock);
	list_for_each_entry_safe(chunk, next, &ctx->lru, lru) {
		if (chunk->live || chunk->zapped)
			continue;
		list_move_tail(&chunk->lru, &empty);
		ctx->empty_chunks--;
		unhang(ctx, &chunk->leaf, &inner);
	}
	mutex_unlock(&ctx->table_lock);
	flush_all(ctx);
	list_for_each_entry_safe(chunk, next, &empty, lru) {
		xa_erase(&ctx->chunks, chunk->start >> PRAWN_CHUNK_SHIFT);
		chunk_free(chunk);
	}
	while (inner) {
		struct prawn_table *table = inner;

		inner = table->child[0];
		inner_free(ctx, table);
	}
}

int prawn_table_init(struct prawn_ctx *ctx)
{
	BUILD_BUG_ON(PAGE_SHIFT != PRAWN_PAGE_SHIFT);
	ctx->top = inner_alloc(ctx);
	return ctx->top ? 0 : -ENOMEM;
}

static void inner_free_all(struct prawn_ctx *ctx, struct prawn_table *table,
			   int level)
{
	unsigned int i;

	for (i = 0; level > 1 && i < PRAWN_CHUNK_PAGES; i++)
		if (table->child[i])
			inner_free_all(ctx, table->child[i], level - 1);
	inner_free(ctx, table);
}

/* The context is disabled (or the card's DMA is off): no walk is under way. */
void prawn_table_exit(struct prawn_ctx *ctx)
{
	struct prawn_chunk *chunk;
	unsigned long i;

	xa_for_each(&ctx->chunks, i, chunk) {
		mutex_lock(&ctx->table_lock);
		prawn_zap(chunk, 0, PRAWN_CHUNK_PAGES - 1, true);
		list_del_init(&chunk->lru);
		mutex_unlock(&ctx->table_lock);
		prawn_chunk_reap(chunk);
		xa_erase(&ctx->chunks, i);
		chunk_free(chunk);
	}
	xa_destroy(&ctx->chunks);
	if (ctx->top)
		inner_free_all(ctx, ctx->top, PRAWN_TABLE_LEVELS - 1);
	ctx->top = NULL;
}
