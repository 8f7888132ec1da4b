// SPDX-License-Identifier: GPL-2.0-only
/*
 * How pins follow the address space.
 *
 * An invalidation clears the valid bits of its range, has the card forget and
 * drain the translations, and returns; unpinning is left to a work item. What
 * the events mean here:
 *
 *   UNMAP, RELEASE     munmap, mremap, exit: everything goes, and exports that
 *                      lose a page are withdrawn (by the work item)
 *   PROTECTION_PAGE,   fork, write-back, soft-dirty: a pinned page stays where
 *   SOFT_DIRTY         it is (fork copies it for the child), nothing to do
 *   others             madvise, truncate, mprotect, copy-on-write, migration,
 *                      splitting of a huge page: pins go, for PIN finds out at
 *                      little cost. Exported pages cannot go on suspicion (a
 *                      neighbour in the same huge page may have been the aim),
 *                      so the work item looks whether the process still has
 *                      the same page, writable, and withdraws if not. What the
 *                      card writes until then lands in the page given up,
 *                      which is still pinned: lost, never misdirected.
 */

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "prawn.h"

static void invalidate_translations(struct prawn_chunk *chunk,
				    unsigned int first, unsigned int pages)
{
	struct prawn_ctx *ctx = chunk->ctx;
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_UTLB_INVALIDATE,
		.context = cpu_to_le16(ctx->id),
		.a = cpu_to_le64(chunk->start + first * PAGE_SIZE),
		.b = cpu_to_le64(pages),
	};

	if (!ctx->up)
		return;
	/* A card that does not confirm must lose its DMA: pages are freed next. */
	if (prawn_admin(ctx->pd, &cmd))
		prawn_kill(ctx->pd, "translations not invalidated");
}

/*
 * table_lock. Makes live pages of [first, last] unreachable for the card, and
 * returns how many; exported pages only if told so.
 */
unsigned int prawn_zap(struct prawn_chunk *chunk, unsigned int first,
		       unsigned int last, bool exported_too)
{
	struct prawn_ctx *ctx = chunk->ctx;
	unsigned int low = last, high = first, count = 0, i;

	lockdep_assert_held(&ctx->table_lock);
	for (i = first; i <= last; i++) {
		struct prawn_rec *rec = &chunk->rec[i];
		u64 entry = prawn_entry(chunk, i);

		if (!(entry & PRAWN_TABLE_ENTRY_VALID_MASK) ||
		    (rec->exports && !exported_too))
			continue;
		prawn_entry_set(chunk, i,
				entry & PRAWN_TABLE_ENTRY_ADDRESS_MASK);
		if (!rec->exports)
			atomic_long_dec(&ctx->pd->reclaimable);
		if (rec->flags & PRAWN_REC_VERIFY)
			chunk->verify--;
		rec->exports = 0;
		rec->flags &= PRAWN_REC_WRITE;
		rec->flags |= PRAWN_REC_ZAPPED;
		low = min(low, i);
		high = max(high, i);
		count++;
	}
	if (!count)
		return 0;
	chunk->live -= count;
	chunk->zapped += count;
	ctx->zaps += count;
	invalidate_translations(chunk, low, high - low + 1);
	return count;
}

/* table_lock. */
static void lose_exports(struct prawn_ctx *ctx, u64 start, u64 end)
{
	struct prawn_xport *x;

	list_for_each_entry(x, &ctx->exports, link)
		if (x->address < end && PAGE_ALIGN(x->address + x->length) > start)
			x->lost = true;
}

static void suspect(struct prawn_chunk *chunk, unsigned int first,
		    unsigned int last)
{
	unsigned int i;

	for (i = first; i <= last; i++) {
		struct prawn_rec *rec = &chunk->rec[i];

		if (rec->exports && !(rec->flags & PRAWN_REC_VERIFY)) {
			rec->flags |= PRAWN_REC_VERIFY;
			chunk->verify++;
		}
	}
}

static bool any_live(struct prawn_chunk *chunk, unsigned int first,
		     unsigned int last)
{
	unsigned int i;

	for (i = first; chunk->live && i <= last; i++)
		if (prawn_entry(chunk, i) & PRAWN_TABLE_ENTRY_VALID_MASK)
			return true;
	return false;
}

static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct prawn_chunk *chunk =
		container_of(notifier, struct prawn_chunk, notifier);
	struct prawn_ctx *ctx = chunk->ctx;
	unsigned long size = 1ul << PRAWN_CHUNK_SHIFT;
	unsigned long start = max(range->start, chunk->start);
	unsigned long end = min(range->end, chunk->start + size);
	unsigned int first = (start - chunk->start) >> PAGE_SHIFT;
	unsigned int last = (end - 1 - chunk->start) >> PAGE_SHIFT;
	bool harmless = range->event == MMU_NOTIFY_PROTECTION_PAGE ||
			range->event == MMU_NOTIFY_SOFT_DIRTY;
	bool gone = range->event == MMU_NOTIFY_UNMAP ||
		    range->event == MMU_NOTIFY_RELEASE;

	if (mmu_notifier_range_blockable(range)) {
		mutex_lock(&ctx->table_lock);
	} else {
		if (!mutex_trylock(&ctx->table_lock))
			return false;
		if (!harmless && any_live(chunk, first, last)) {
			mutex_unlock(&ctx->table_lock);
			return false;
		}
	}
	mmu_interval_set_seq(notifier, seq);
	if (!harmless && any_live(chunk, first, last)) {
		prawn_zap(chunk, first, last, gone);
		if (gone)
			lose_exports(ctx, start, end);
		else
			suspect(chunk, first, last);
		schedule_work(&ctx->reap_work);
	}
	mutex_unlock(&ctx->table_lock);
	return true;
}

const struct mmu_interval_notifier_ops prawn_notifier_ops = {
	.invalidate = invalidate,
};

/* op_lock. Has the process still got the page that is exported at va? */
static bool same_page(struct prawn_ctx *ctx, unsigned long va,
		      const struct page *page)
{
	struct page *now;
	long got;

	mmap_read_lock(ctx->mm);
	got = prawn_gup_remote(ctx->mm, va, FOLL_WRITE, &now);
	mmap_read_unlock(ctx->mm);
	if (got != 1)
		return false;
	unpin_user_page(now);
	return now == page;
}

/* table_lock. Takes the doubt about a page back; NULL if there was none. */
static struct page *clear_doubt(struct prawn_chunk *chunk, unsigned int i)
{
	struct prawn_rec *rec = &chunk->rec[i];

	if (!(rec->flags & PRAWN_REC_VERIFY))
		return NULL;
	rec->flags &= ~PRAWN_REC_VERIFY;
	chunk->verify--;
	chunk->ctx->verified++;
	return rec->page;
}

/*
 * op_lock, mm held. Looks after the pages that the notifier had doubts about.
 * It is called before the change happens; mmu_interval_read_begin waits until
 * it has happened. Something new in the meantime raises the doubt again.
 */
static void verify_chunk(struct prawn_chunk *chunk)
{
	struct prawn_ctx *ctx = chunk->ctx;
	unsigned int i;

	for (i = 0; READ_ONCE(chunk->verify) && i < PRAWN_CHUNK_PAGES; i++) {
		unsigned long va = chunk->start + i * PAGE_SIZE;
		unsigned long seq;
		struct page *page;

		if (!(READ_ONCE(chunk->rec[i].flags) & PRAWN_REC_VERIFY))
			continue;
		seq = mmu_interval_read_begin(&chunk->notifier);
		mutex_lock(&ctx->table_lock);
		page = clear_doubt(chunk, i);
		mutex_unlock(&ctx->table_lock);
		if (!page || same_page(ctx, va, page)) {
			if (!mmu_interval_check_retry(&chunk->notifier, seq))
				continue;
			/* An invalidation that is not over may be about it. */
			mutex_lock(&ctx->table_lock);
			suspect(chunk, i, i);
			mutex_unlock(&ctx->table_lock);
			schedule_work(&ctx->reap_work);
			continue;
		}
		/* Only we unpin, under op_lock: the record is still the same. */
		mutex_lock(&ctx->table_lock);
		prawn_zap(chunk, i, i, true);
		lose_exports(ctx, va, va + PAGE_SIZE);
		mutex_unlock(&ctx->table_lock);
	}
}

void prawn_reap_work(struct work_struct *work)
{
	struct prawn_ctx *ctx = container_of(work, struct prawn_ctx, reap_work);
	struct prawn_chunk *chunk;
	unsigned long i;

	mutex_lock(&ctx->op_lock);
	if (!ctx->up)
		goto out;
	if (mmget_not_zero(ctx->mm)) {
		xa_for_each(&ctx->chunks, i, chunk)
			verify_chunk(chunk);
		/* the last user's exit would come back here: not from here */
		mmput_async(ctx->mm);
	}
	prawn_exports_withdraw_lost(ctx);
	xa_for_each(&ctx->chunks, i, chunk)
		prawn_chunk_reap(chunk);
	prawn_chunk_trim(ctx);
out:
	mutex_unlock(&ctx->op_lock);
}

static unsigned long shrink_count(struct shrinker *shrinker,
				  struct shrink_control *sc)
{
	struct prawn_dev *pd = prawn_shrinker_owner(shrinker);
	long count = atomic_long_read(&pd->reclaimable);

	return count > 0 ? count : SHRINK_EMPTY;
}

/* Oldest chunks first; what is exported stays. The work items unpin. */
static unsigned long shrink_ctx(struct prawn_ctx *ctx, unsigned long want)
{
	struct prawn_chunk *chunk, *next;
	unsigned long got = 0;

	if (!mutex_trylock(&ctx->table_lock))
		return 0;
	list_for_each_entry_safe(chunk, next, &ctx->lru, lru) {
		if (got >= want || !ctx->up)
			break;
		if (chunk->live)
			got += prawn_zap(chunk, 0, PRAWN_CHUNK_PAGES - 1,
					 false);
	}
	if (got)
		schedule_work(&ctx->reap_work);
	mutex_unlock(&ctx->table_lock);
	return got;
}

static unsigned long shrink_scan(struct shrinker *shrinker,
				 struct shrink_control *sc)
{
	struct prawn_dev *pd = prawn_shrinker_owner(shrinker);
	struct prawn_ctx *ctx;
	unsigned long got = 0;

	/* It waits for the card, so not on behalf of those who must not wait. */
	if ((sc->gfp_mask & (__GFP_FS | __GFP_IO)) != (__GFP_FS | __GFP_IO) ||
	    !mutex_trylock(&pd->file_lock))
		return SHRINK_STOP;
	list_for_each_entry(ctx, &pd->files, link) {
		if (got >= sc->nr_to_scan)
			break;
		got += shrink_ctx(ctx, sc->nr_to_scan - got);
	}
	mutex_unlock(&pd->file_lock);
	return got ? got : SHRINK_STOP;
}

int prawn_shrinker_init(struct prawn_dev *pd)
{
	int err;

	pd->shrinker = prawn_shrinker_alloc(pd);
	if (!pd->shrinker)
		return -ENOMEM;
	pd->shrinker->count_objects = shrink_count;
	pd->shrinker->scan_objects = shrink_scan;
	err = prawn_shrinker_register(pd->shrinker);
	if (err)
		prawn_shrinker_free(pd->shrinker);
	return err;
}
