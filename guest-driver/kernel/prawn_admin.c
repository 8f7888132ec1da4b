// SPDX-License-Identifier: GPL-2.0-only
/*
 * The admin ring: how the kernel commands the card.
 *
 * A submitter writes the next slot, rings, and waits for the acknowledgement
 * of its own command in host memory. Acknowledgements may overtake; a slot is
 * free again when its submitter has collected it. Callers may sleep, but need
 * nothing else: mmu notifiers submit from within reclaim. A command that is not
 * acknowledged in time kills the card (prawn_kill), so nobody waits for ever.
 */

#include <linux/delay.h>
#include <linux/moduleparam.h>

#include "prawn.h"

#define SPIN_ROUNDS 400
#define SLICE_MS 100

static unsigned int admin_timeout_ms = 30000;
module_param(admin_timeout_ms, uint, 0644);
MODULE_PARM_DESC(admin_timeout_ms,
		 "milliseconds after which a card that does not answer is given up");

static struct prawn_admin_ack *ack_of(struct prawn_dev *pd, u32 index)
{
	struct prawn_admin_ack *acks = pd->admin.acks.cpu;

	return &acks[index % PRAWN_ADMIN_SLOTS];
}

static bool acknowledged(struct prawn_dev *pd, u32 index)
{
	return le32_to_cpu(READ_ONCE(ack_of(pd, index)->seq)) == index + 1;
}

int prawn_admin_init(struct prawn_dev *pd)
{
	int err;

	err = prawn_ring_alloc(pd, &pd->admin.ring,
			       PRAWN_ADMIN_SLOTS *
				       sizeof(struct prawn_admin_command));
	if (err)
		return err;
	err = prawn_ring_alloc(pd, &pd->admin.acks,
			       PRAWN_ADMIN_SLOTS *
				       sizeof(struct prawn_admin_ack));
	if (err)
		prawn_ring_free(pd, &pd->admin.ring);
	return err;
}

/* After a reset of the card: its indices start at 0 again. */
void prawn_admin_reinit(struct prawn_dev *pd)
{
	pd->admin.producer = 0;
	bitmap_zero(pd->admin.busy, PRAWN_ADMIN_SLOTS);
	memset(pd->admin.ring.cpu, 0, pd->admin.ring.size);
	memset(pd->admin.acks.cpu, 0, pd->admin.acks.size);
}

void prawn_admin_exit(struct prawn_dev *pd)
{
	prawn_ring_free(pd, &pd->admin.acks);
	prawn_ring_free(pd, &pd->admin.ring);
}

/* True if the slot was free: the command is on its way as *index. */
static bool try_submit(struct prawn_dev *pd,
		       const struct prawn_admin_command *cmd, u32 *index)
{
	struct prawn_admin *admin = &pd->admin;
	struct prawn_admin_command *ring = admin->ring.cpu;
	unsigned long flags;
	unsigned int slot;
	bool ok;

	spin_lock_irqsave(&admin->lock, flags);
	slot = admin->producer % PRAWN_ADMIN_SLOTS;
	ok = admin->up && !__test_and_set_bit(slot, admin->busy);
	if (ok) {
		*index = admin->producer++;
		ring[slot] = *cmd;
		ring[slot].flags = PRAWN_ADMIN_FLAG_INTERRUPT;
		/* writel orders the entry before the doorbell */
		prawn_write32(pd, PRAWN_BAR0_ADMIN_DOORBELL, admin->producer);
	}
	spin_unlock_irqrestore(&admin->lock, flags);
	if (ok)
		atomic64_inc(&admin->commands);
	return ok;
}

static bool slot_free(struct prawn_dev *pd)
{
	return !test_bit(READ_ONCE(pd->admin.producer) % PRAWN_ADMIN_SLOTS,
			 pd->admin.busy);
}

static int submit(struct prawn_dev *pd, const struct prawn_admin_command *cmd,
		  u32 *index)
{
	unsigned long end = jiffies + msecs_to_jiffies(admin_timeout_ms);

	while (!try_submit(pd, cmd, index)) {
		if (READ_ONCE(pd->dead) || !READ_ONCE(pd->admin.up))
			return -EIO;
		if (time_after(jiffies, end)) {
			prawn_kill(pd, "the admin ring does not move");
			return -EIO;
		}
		wait_event_timeout(pd->admin.wait,
				   slot_free(pd) || READ_ONCE(pd->dead),
				   msecs_to_jiffies(SLICE_MS));
	}
	return 0;
}

static int errno_of(struct prawn_dev *pd, u32 index, u16 status)
{
	const struct prawn_admin_command *ring = pd->admin.ring.cpu;

	switch (status) {
	case PRAWN_STATUS_OK:
		return 0;
	case PRAWN_STATUS_BUSY:
		return -EBUSY;
	case PRAWN_STATUS_PEER_DEAD:
	case PRAWN_STATUS_NO_HOST:
		return -EHOSTDOWN;
	case PRAWN_STATUS_UNSUPPORTED:
		return -EOPNOTSUPP;
	default:
		dev_warn_ratelimited(&pd->pdev->dev,
				     "admin command %u refused: status %u\n",
				     ring[index % PRAWN_ADMIN_SLOTS].opcode,
				     status);
		return -EPROTO;
	}
}

/*
 * Spin briefly, for the answer usually takes microseconds; then sleep until
 * vector 0 wakes us, looking again now and then, so that a lost interrupt costs
 * a tenth of a second and not the machine.
 */
static bool wait_ack(struct prawn_dev *pd, u32 index)
{
	unsigned long end = jiffies + msecs_to_jiffies(admin_timeout_ms);
	int i;

	for (i = 0; i < SPIN_ROUNDS; i++) {
		if (acknowledged(pd, index))
			return true;
		cpu_relax();
	}
	atomic64_inc(&pd->admin.slept);
	for (;;) {
		if (wait_event_timeout(pd->admin.wait,
				       acknowledged(pd, index) ||
					       READ_ONCE(pd->dead),
				       msecs_to_jiffies(SLICE_MS)))
			return acknowledged(pd, index);
		if (prawn_hw_vanished(pd))
			prawn_kill(pd, "it has vanished");
		else if (time_after(jiffies, end))
			prawn_kill(pd, "admin command not acknowledged");
	}
}

static int finish(struct prawn_dev *pd, u32 index)
{
	struct prawn_admin_ack *ack = ack_of(pd, index);
	unsigned long flags;
	u16 status;
	int err;

	if (!wait_ack(pd, index))
		return -EIO; /* the slot stays busy: the card is dead */
	dma_rmb();
	status = le16_to_cpu(ack->status);
	err = errno_of(pd, index, status);
	spin_lock_irqsave(&pd->admin.lock, flags);
	__clear_bit(index % PRAWN_ADMIN_SLOTS, pd->admin.busy);
	spin_unlock_irqrestore(&pd->admin.lock, flags);
	wake_up_all(&pd->admin.wait);
	return err;
}

/* 0, or -EIO (dead), -EBUSY, -EHOSTDOWN, -EOPNOTSUPP, -EPROTO. May sleep. */
int prawn_admin(struct prawn_dev *pd, const struct prawn_admin_command *cmd)
{
	u32 index;
	int err;

	might_sleep();
	err = submit(pd, cmd, &index);
	return err ? err : finish(pd, index);
}

/*
 * Many commands, several under way at a time. A batch that finds the ring full
 * collects its own oldest command instead of waiting for others with slots in
 * hand, so batches cannot wait for each other in a circle.
 */
void prawn_batch_init(struct prawn_batch *batch, struct prawn_dev *pd)
{
	batch->pd = pd;
	batch->head = 0;
	batch->count = 0;
	batch->error = 0;
}

static void collect(struct prawn_batch *batch)
{
	int err = finish(batch->pd, batch->index[batch->head]);

	batch->head = (batch->head + 1) % PRAWN_BATCH;
	batch->count--;
	if (err && !batch->error)
		batch->error = err;
}

void prawn_batch_add(struct prawn_batch *batch,
		     const struct prawn_admin_command *cmd)
{
	u32 index;

	if (batch->count == PRAWN_BATCH)
		collect(batch);
	while (!try_submit(batch->pd, cmd, &index)) {
		int err;

		if (batch->count) {
			collect(batch);
			continue;
		}
		err = submit(batch->pd, cmd, &index);
		if (!err)
			break;
		if (!batch->error)
			batch->error = err;
		return;
	}
	batch->index[(batch->head + batch->count) % PRAWN_BATCH] = index;
	batch->count++;
}

int prawn_batch_end(struct prawn_batch *batch)
{
	while (batch->count)
		collect(batch);
	return batch->error;
}

/* Grants are for the checker of test builds; other cards do not want them. */
static bool checked(struct prawn_dev *pd)
{
	return pd->features & PRAWN_FEATURES_CHECKER_MASK;
}

void prawn_grant(struct prawn_batch *batch, u32 context, dma_addr_t dma,
		 u64 pages, bool write)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_GRANT,
		.context = cpu_to_le16(context),
		.a = cpu_to_le64(dma),
		.b = cpu_to_le64(pages),
		.c = cpu_to_le64(write),
	};

	if (checked(batch->pd))
		prawn_batch_add(batch, &cmd);
}

void prawn_revoke(struct prawn_batch *batch, u32 context, dma_addr_t dma,
		  u64 pages)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_REVOKE,
		.context = cpu_to_le16(context),
		.a = cpu_to_le64(dma),
		.b = cpu_to_le64(pages),
	};

	if (checked(batch->pd))
		prawn_batch_add(batch, &cmd);
}

int prawn_grant_one(struct prawn_dev *pd, u32 context, dma_addr_t dma,
		    size_t size, bool write)
{
	struct prawn_batch batch;

	prawn_batch_init(&batch, pd);
	prawn_grant(&batch, context, dma, size >> PAGE_SHIFT, write);
	return prawn_batch_end(&batch);
}

void prawn_revoke_one(struct prawn_dev *pd, u32 context, dma_addr_t dma,
		      size_t size)
{
	struct prawn_batch batch;

	prawn_batch_init(&batch, pd);
	prawn_revoke(&batch, context, dma, size >> PAGE_SHIFT);
	prawn_batch_end(&batch);
}
