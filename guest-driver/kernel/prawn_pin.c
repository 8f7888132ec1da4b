// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinning. PIN and EXPORT claim pages, UNPIN and UNEXPORT give claims up; a
 * page is unpinned when nobody claims it.
 *
 * A page goes through: missing -> live (entry valid) -> zapped (entry invalid,
 * the card has drained it) -> missing (unpinned). Notifiers and the shrinker
 * only zap; unpinning is for whoever holds op_lock: the next call or a work
 * item (prawn_chunk_reap).
 */

#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "prawn.h"

#define GUP_BATCH 64
#define RETRIES 64

int prawn_range_check(u64 address, u64 length)
{
	u64 end = address + length;

	if (!length || end < address || end > TASK_SIZE_MAX ||
	    end > 1ull << PRAWN_VA_BITS)
		return -EINVAL;
	return 0;
}

static enum dma_data_direction direction(bool write)
{
	return write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/* How many of n pages may still be charged to the address space. */
static unsigned long charge(struct prawn_ctx *ctx, unsigned long n)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 now = atomic64_add_return(n, &ctx->mm->pinned_vm);

	if (now > limit && !capable(CAP_IPC_LOCK)) {
		unsigned long over = min_t(u64, n, now - limit);

		atomic64_sub(over, &ctx->mm->pinned_vm);
		n -= over;
	}
	ctx->pinned += n;
	return n;
}

static void uncharge(struct prawn_ctx *ctx, unsigned long n)
{
	atomic64_sub(n, &ctx->mm->pinned_vm);
	ctx->pinned -= n;
}

static bool in_memory(const struct file *file)
{
	switch (file_inode(file)->i_sb->s_magic) {
	case TMPFS_MAGIC: /* also memfd and shared anonymous memory */
	case HUGETLBFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/*
 * Pages of a shared file mapping belong to a file system that wants to be asked
 * before each write; a card that writes does not ask. mmap_lock is held.
 */
static bool dirties_file(struct mm_struct *mm, unsigned long va,
			 unsigned long end)
{
	struct vm_area_struct *vma;

	while (va < end && (vma = find_vma(mm, va)) && vma->vm_start < end) {
		if (vma->vm_file && vma->vm_flags & VM_SHARED &&
		    !in_memory(vma->vm_file))
			return true;
		va = vma->vm_end;
	}
	return false;
}

static long gup(struct prawn_ctx *ctx, unsigned long va, unsigned long n,
		bool write, struct page **pages)
{
	long got;

	if (mmap_read_lock_killable(ctx->mm))
		return -EINTR;
	if (write && dirties_file(ctx->mm, va, va + n * PAGE_SIZE))
		got = -EOPNOTSUPP;
	else
		got = prawn_gup(va, n,
				FOLL_LONGTERM | (write ? FOLL_WRITE : 0),
				pages);
	mmap_read_unlock(ctx->mm);
	return got ? got : -EFAULT;
}

/* Grants or revokes runs of adjacent pages with one command each. */
static int regrant(struct prawn_ctx *ctx, const dma_addr_t *dma, unsigned int n,
		   bool grant, bool write)
{
	struct prawn_batch batch;
	unsigned int i, run;

	prawn_batch_init(&batch, ctx->pd);
	for (i = 0; i < n; i += run) {
		for (run = 1; i + run < n &&
			      dma[i + run] == dma[i] + run * PAGE_SIZE;
		     run++)
			;
		if (grant)
			prawn_grant(&batch, ctx->id, dma[i], run, write);
		else
			prawn_revoke(&batch, ctx->id, dma[i], run);
	}
	return prawn_batch_end(&batch);
}

static void pages_release(struct prawn_ctx *ctx, struct page **pages,
			  const dma_addr_t *dma, unsigned int n, bool write)
{
	unsigned int i;

	regrant(ctx, dma, n, false, write);
	for (i = 0; i < n; i++)
		dma_unmap_page(&ctx->pd->pdev->dev, dma[i], PAGE_SIZE,
			       direction(write));
	unpin_user_pages_dirty_lock(pages, n, write);
	uncharge(ctx, n);
}

/*
 * op_lock. Pins up to GUP_BATCH missing pages from `first` on: pinned, charged,
 * mapped for DMA, granted, but not in the table yet. How many, or an error.
 */
static long pages_get(struct prawn_ctx *ctx, unsigned long va, unsigned long n,
		      bool write, struct page **pages, dma_addr_t *dma)
{
	struct device *dev = &ctx->pd->pdev->dev;
	unsigned long charged = charge(ctx, n);
	long got, i;
	int err;

	if (!charged)
		return -ENOMEM;
	got = gup(ctx, va, charged, write, pages);
	uncharge(ctx, charged - max(got, 0L));
	if (got < 0)
		return got;
	for (i = 0; i < got; i++) {
		dma[i] = dma_map_page(dev, pages[i], 0, PAGE_SIZE,
				      direction(write));
		if (dma_mapping_error(dev, dma[i])) {
			err = -ENOMEM;
			goto undo;
		}
	}
	err = regrant(ctx, dma, got, true, write);
	if (!err)
		return got;
	regrant(ctx, dma, got, false, write);
undo:
	while (i--)
		dma_unmap_page(dev, dma[i], PAGE_SIZE, direction(write));
	unpin_user_pages(pages, got);
	uncharge(ctx, got);
	return err;
}

/* op_lock, not table_lock. Unpins what notifiers and others have zapped. */
void prawn_chunk_reap(struct prawn_chunk *chunk)
{
	struct prawn_ctx *ctx = chunk->ctx;
	struct page *pages[GUP_BATCH];
	dma_addr_t dma[GUP_BATCH];
	unsigned int i = 0, n;
	bool write;

	while (READ_ONCE(chunk->zapped)) {
		n = 0;
		write = false;
		mutex_lock(&ctx->table_lock);
		for (; i < PRAWN_CHUNK_PAGES && n < GUP_BATCH; i++) {
			struct prawn_rec *rec = &chunk->rec[i];
			bool w = rec->flags & PRAWN_REC_WRITE;

			if (!(rec->flags & PRAWN_REC_ZAPPED))
				continue;
			if (n && w != write)
				break; /* the other kind in the next round */
			write = w;
			pages[n] = rec->page;
			dma[n++] = prawn_entry(chunk, i) &
				   PRAWN_TABLE_ENTRY_ADDRESS_MASK;
			prawn_entry_set(chunk, i, 0);
			rec->page = NULL;
			rec->flags = 0;
			chunk->zapped--;
		}
		if (n && !chunk->live && !chunk->zapped)
			ctx->empty_chunks++;
		mutex_unlock(&ctx->table_lock);
		if (!n) {
			i = 0; /* zapped behind us meanwhile */
			continue;
		}
		pages_release(ctx, pages, dma, n, write);
	}
}

/* op_lock. What was unmapped a moment ago still counts until it is unpinned. */
static void reap_all(struct prawn_ctx *ctx)
{
	struct prawn_chunk *chunk;
	unsigned long i;

	xa_for_each(&ctx->chunks, i, chunk)
		prawn_chunk_reap(chunk);
}

/* table_lock. Takes the claim on page i if it is there already. */
static bool claim_live(struct prawn_chunk *chunk, unsigned int i, bool write,
		       bool exported)
{
	struct prawn_rec *rec = &chunk->rec[i];

	if (!(prawn_entry(chunk, i) & PRAWN_TABLE_ENTRY_VALID_MASK) ||
	    (write && !(rec->flags & PRAWN_REC_WRITE)))
		return false;
	if (exported) {
		if (!rec->exports++)
			atomic_long_dec(&chunk->ctx->pd->reclaimable);
	} else {
		rec->flags |= PRAWN_REC_PIN;
	}
	return true;
}

/* table_lock. Page i is missing; it gets the claimed page. */
static void install(struct prawn_chunk *chunk, unsigned int i,
		    struct page *page, dma_addr_t dma, bool write,
		    bool exported)
{
	struct prawn_ctx *ctx = chunk->ctx;
	struct prawn_rec *rec = &chunk->rec[i];

	rec->page = page;
	rec->born = ++ctx->births;
	rec->exports = exported;
	rec->flags = (write ? PRAWN_REC_WRITE : 0) |
		     (exported ? 0 : PRAWN_REC_PIN);
	if (!chunk->live && !chunk->zapped)
		ctx->empty_chunks--;
	chunk->live++;
	if (!exported)
		atomic_long_inc(&ctx->pd->reclaimable);
	prawn_entry_set(chunk, i,
			PRAWN_TABLE_ENTRY_VALID_MASK |
				(write ? PRAWN_TABLE_ENTRY_WRITE_MASK : 0) |
				dma);
}

/*
 * op_lock. One step of a claim, from page `first` of a chunk, at most up to
 * `last`: pages claimed (at least 1), 0 to try again, or an error.
 */
static long claim_step(struct prawn_chunk *chunk, unsigned int first,
		       unsigned int last, bool write, bool exported)
{
	struct prawn_ctx *ctx = chunk->ctx;
	unsigned long va = chunk->start + first * PAGE_SIZE;
	struct page *pages[GUP_BATCH];
	dma_addr_t dma[GUP_BATCH];
	unsigned int i = first, n = 0;
	unsigned long seq;
	long got;

	prawn_chunk_reap(chunk);
	seq = mmu_interval_read_begin(&chunk->notifier);
	mutex_lock(&ctx->table_lock);
	while (i <= last && claim_live(chunk, i, write, exported))
		i++;
	if (i == first) {
		/* pinned, but for reading: it must go first */
		if (prawn_entry(chunk, i) & PRAWN_TABLE_ENTRY_VALID_MASK)
			prawn_zap(chunk, i, i, false);
		while (i + n <= last && n < GUP_BATCH &&
		       !chunk->rec[i + n].page)
			n++;
	}
	list_move_tail(&chunk->lru, &ctx->lru);
	mutex_unlock(&ctx->table_lock);
	if (i > first)
		return i - first;
	if (!n)
		return 0;

	got = pages_get(ctx, va, n, write, pages, dma);
	if (got < 0)
		return got;
	mutex_lock(&ctx->table_lock);
	if (mmu_interval_read_retry(&chunk->notifier, seq)) {
		ctx->retries++;
		mutex_unlock(&ctx->table_lock);
		pages_release(ctx, pages, dma, got, write);
		return 0;
	}
	for (i = 0; i < got; i++)
		install(chunk, first + i, pages[i], dma[i], write, exported);
	mutex_unlock(&ctx->table_lock);
	return got;
}

/*
 * op_lock. Claims all pages of a checked range, from the start; *done says how
 * many bytes of it are claimed, also when it fails.
 */
int prawn_claim(struct prawn_ctx *ctx, u64 address, u64 length, bool write,
		bool exported, u64 *done)
{
	unsigned long va = address & PAGE_MASK;
	unsigned long end = PAGE_ALIGN(address + length);
	unsigned int tries = 0;
	bool reaped = false;
	int err = 0;

	while (va < end) {
		struct prawn_chunk *chunk = prawn_chunk_get(ctx, va);
		unsigned long stop;
		long got;

		if (IS_ERR(chunk)) {
			err = PTR_ERR(chunk);
			break;
		}
		stop = min(end, chunk->start + (1ul << PRAWN_CHUNK_SHIFT));
		got = claim_step(chunk, (va - chunk->start) >> PAGE_SHIFT,
				 (stop - 1 - chunk->start) >> PAGE_SHIFT, write,
				 exported);
		if (got == -ENOMEM && !reaped) {
			reap_all(ctx);
			reaped = true;
			continue;
		}
		if (got < 0) {
			err = got;
			break;
		}
		tries = got ? 0 : tries + 1;
		va += got * PAGE_SIZE;
		if (va < end && tries == RETRIES) {
			err = -EAGAIN;
			break;
		}
		if (va < end && signal_pending(current)) {
			err = -EINTR;
			break;
		}
		cond_resched();
	}
	*done = va <= address ? 0 : min_t(u64, length, va - address);
	prawn_chunk_trim(ctx);
	return err;
}

/* table_lock. PIN gives up its claim; true if it was the last. */
static bool drop_pin(struct prawn_rec *rec)
{
	if (!rec->page || rec->flags & PRAWN_REC_ZAPPED)
		return false;
	rec->flags &= ~PRAWN_REC_PIN;
	return !rec->exports;
}

/*
 * table_lock. An export gives up its claim, which it has on pages that are as
 * old as itself: a younger one took the place of a page that was unmapped.
 */
static bool drop_export(struct prawn_dev *pd, struct prawn_rec *rec, u64 born)
{
	if (!rec->page || rec->flags & PRAWN_REC_ZAPPED || rec->born > born ||
	    WARN_ON_ONCE(!rec->exports))
		return false;
	if (--rec->exports)
		return false;
	atomic_long_inc(&pd->reclaimable);
	return !(rec->flags & PRAWN_REC_PIN);
}

/* op_lock. Gives claims up in one chunk; how many pages were unpinned. */
static unsigned int unclaim_chunk(struct prawn_chunk *chunk, unsigned int i,
				  unsigned int last, bool exported, u64 born)
{
	struct prawn_ctx *ctx = chunk->ctx;
	unsigned int run, sum = 0;

	mutex_lock(&ctx->table_lock);
	for (; i <= last; i += run + 1) {
		for (run = 0; i + run <= last; run++) {
			struct prawn_rec *rec = &chunk->rec[i + run];

			if (!(exported ? drop_export(ctx->pd, rec, born) :
					 drop_pin(rec)))
				break;
		}
		if (run)
			sum += prawn_zap(chunk, i, i + run - 1, false);
	}
	mutex_unlock(&ctx->table_lock);
	prawn_chunk_reap(chunk);
	return sum;
}

static u64 unclaim_range(struct prawn_ctx *ctx, u64 address, u64 length,
			 bool exported, u64 born)
{
	unsigned long first = address >> PRAWN_CHUNK_SHIFT;
	unsigned long last = (address + length - 1) >> PRAWN_CHUNK_SHIFT;
	struct prawn_chunk *chunk;
	unsigned long at;
	u64 sum = 0;

	xa_for_each_range(&ctx->chunks, at, chunk, first, last) {
		u64 from = max_t(u64, address, chunk->start);
		u64 to = min_t(u64, address + length - 1,
			       chunk->start + (1ul << PRAWN_CHUNK_SHIFT) - 1);

		sum += unclaim_chunk(chunk, (from - chunk->start) >> PAGE_SHIFT,
				     (to - chunk->start) >> PAGE_SHIFT,
				     exported, born);
		cond_resched();
	}
	prawn_chunk_trim(ctx);
	return sum;
}

/*
 * op_lock. The opposite of prawn_claim, drained when it returns. *pages: how
 * many were unpinned.
 */
void prawn_unclaim(struct prawn_ctx *ctx, u64 address, u64 length, u64 *pages)
{
	*pages = unclaim_range(ctx, address, length, false, 0);
}

void prawn_unclaim_export(struct prawn_ctx *ctx, u64 address, u64 length,
			  u64 born)
{
	if (length)
		unclaim_range(ctx, address, length, true, born);
}

int prawn_pin(struct prawn_ctx *ctx, struct prawn_pin *arg)
{
	arg->pinned = 0;
	if (arg->flags & ~PRAWN_PIN_WRITE || arg->rsvd)
		return -EINVAL;
	if (prawn_range_check(arg->address, arg->length))
		return -EINVAL;
	return prawn_claim(ctx, arg->address, arg->length,
			   arg->flags & PRAWN_PIN_WRITE, false, &arg->pinned);
}

int prawn_unpin(struct prawn_ctx *ctx, struct prawn_unpin *arg)
{
	u64 pages;

	arg->unpinned = 0;
	if (arg->flags || arg->rsvd ||
	    prawn_range_check(arg->address, arg->length))
		return -EINVAL;
	prawn_unclaim(ctx, arg->address, arg->length, &pages);
	arg->unpinned = pages << PAGE_SHIFT;
	return 0;
}
