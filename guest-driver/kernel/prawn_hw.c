// SPDX-License-Identifier: GPL-2.0-only
/* Registers of BAR 0: identity, reset, start and stop, counters. */

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>

#include "prawn.h"

#define PRAWN_RESET_MS 10000
#define PRAWN_WATCH_MS 1000

/* Reads of all ones: nothing is there any more. */
bool prawn_hw_vanished(struct prawn_dev *pd)
{
	return prawn_read32(pd, PRAWN_BAR0_ID) == ~0U;
}

int prawn_hw_identify(struct prawn_dev *pd)
{
	u32 id = prawn_read32(pd, PRAWN_BAR0_ID);
	u32 node;
	u64 limits;

	if (id != PRAWN_ID_MAGIC)
		return dev_err_probe(&pd->pdev->dev, -ENODEV,
				     "not a Prawn card: ID reads %#x\n", id);
	pd->abi = prawn_read32(pd, PRAWN_BAR0_ABI);
	if (PRAWN_FIELD_GET(ABI_MAJOR, pd->abi) != PRAWN_ABI_MAJOR)
		return dev_err_probe(&pd->pdev->dev, -EPROTO,
				     "card has ABI %lu, this driver wants %d\n",
				     (unsigned long)PRAWN_FIELD_GET(ABI_MAJOR,
								    pd->abi),
				     PRAWN_ABI_MAJOR);
	pd->features = prawn_read64(pd, PRAWN_BAR0_FEATURES);
	node = prawn_read32(pd, PRAWN_BAR0_NODE);
	pd->node = PRAWN_FIELD_GET(NODE_ID, node);
	pd->nodes = PRAWN_FIELD_GET(NODE_COUNT, node);
	limits = prawn_read64(pd, PRAWN_BAR0_LIMITS);
	pd->contexts = min_t(u32, PRAWN_FIELD_GET(LIMITS_CONTEXTS, limits),
			     PRAWN_CONTEXTS);
	pd->opt_entries = PRAWN_FIELD_GET(LIMITS_OPT_ENTRIES, limits);
	pd->ipt_entries = PRAWN_FIELD_GET(LIMITS_IPT_ENTRIES, limits);
	if (!pd->contexts || !pd->opt_entries || !pd->ipt_entries ||
	    pd->nodes > PRAWN_MAX_NODES || pd->node >= pd->nodes)
		return dev_err_probe(&pd->pdev->dev, -EPROTO,
				     "card reports nonsense: LIMITS %#llx, NODE %#x\n",
				     limits, node);
	return 0;
}

int prawn_hw_reset(struct prawn_dev *pd)
{
	unsigned long end = jiffies + msecs_to_jiffies(PRAWN_RESET_MS);

	prawn_write32(pd, PRAWN_BAR0_CTRL, PRAWN_CTRL_RESET_MASK);
	for (;;) {
		bool late = time_after(jiffies, end);
		u32 status = prawn_read32(pd, PRAWN_BAR0_STATUS);

		if (status == ~0U)
			return -ENODEV;
		if (status & PRAWN_STATUS_READY_MASK)
			return 0;
		if (late)
			return -ETIMEDOUT;
		usleep_range(100, 1000);
	}
}

/* Tell the card its rings and let it work. Interrupts must be ready. */
void prawn_hw_start(struct prawn_dev *pd)
{
	pd->epoch = prawn_read32(pd, PRAWN_BAR0_EPOCH);
	prawn_write64(pd, PRAWN_BAR0_ADMIN_BASE, pd->admin.ring.dma);
	prawn_write64(pd, PRAWN_BAR0_ADMIN_ACK_BASE, pd->admin.acks.dma);
	prawn_write32(pd, PRAWN_BAR0_ADMIN_LOG2, PRAWN_ADMIN_LOG2);
	prawn_write64(pd, PRAWN_BAR0_EVENT_BASE, pd->events.dma);
	prawn_write32(pd, PRAWN_BAR0_EVENT_LOG2, PRAWN_EVENT_LOG2);
	if (!pd->msix)
		prawn_write32(pd, PRAWN_BAR0_INT_ENABLE,
			      PRAWN_INT_CAUSE_EVENT_MASK |
				      PRAWN_INT_CAUSE_ADMIN_MASK |
				      PRAWN_INT_CAUSE_CONTEXT_MASK |
				      PRAWN_INT_CAUSE_CHECK_MASK);
	pd->admin.up = true;
	prawn_write32(pd, PRAWN_BAR0_CTRL, PRAWN_CTRL_ENABLE_MASK);
}

/* The card touches no memory and raises no interrupt after this. */
void prawn_hw_stop(struct prawn_dev *pd)
{
	pd->admin.up = false;
	if (!pd->dead && !prawn_hw_vanished(pd)) {
		prawn_write32(pd, PRAWN_BAR0_INT_ENABLE, 0);
		prawn_write32(pd, PRAWN_BAR0_CTRL, 0);
		if (prawn_hw_reset(pd))
			dev_warn(&pd->pdev->dev, "card does not reset\n");
	}
	pci_clear_master(pd->pdev);
}

void prawn_wake_all(struct prawn_dev *pd)
{
	unsigned long flags;
	unsigned int i;

	wake_up_all(&pd->admin.wait);
	wake_up_all(&pd->mgmt_wait);
	wake_up_all(&pd->rdv_wait);
	spin_lock_irqsave(&pd->id_lock, flags);
	for (i = 0; i < PRAWN_CONTEXTS; i++)
		if (pd->by_id[i])
			prawn_ctx_kick(pd->by_id[i]);
	spin_unlock_irqrestore(&pd->id_lock, flags);
}

/*
 * The card does not answer: turn its DMA off by the one means that does not
 * need its help, and let everybody who waits fail. Only a new probe or a reset
 * brings it back.
 */
void prawn_kill(struct prawn_dev *pd, const char *why)
{
	if (xchg(&pd->dead, true))
		return;
	pci_clear_master(pd->pdev);
	if (!pd->gone)
		dev_err(&pd->pdev->dev, "card given up: %s\n", why);
	prawn_wake_all(pd);
}

/*
 * Processes that sleep for the card ask nothing of it, so nobody else would
 * notice that it has vanished under them.
 */
void prawn_watch_work(struct work_struct *work)
{
	struct prawn_dev *pd = container_of(to_delayed_work(work),
					    struct prawn_dev, watch_work);

	if (prawn_usable(pd))
		return;
	if (!list_empty(&pd->files) && prawn_hw_vanished(pd))
		prawn_kill(pd, "it has vanished");
	else
		prawn_watch_start(pd);
}

void prawn_watch_start(struct prawn_dev *pd)
{
	schedule_delayed_work(&pd->watch_work,
			      msecs_to_jiffies(PRAWN_WATCH_MS));
}

int prawn_usable(struct prawn_dev *pd)
{
	if (READ_ONCE(pd->gone))
		return -ENODEV;
	if (READ_ONCE(pd->dead) || READ_ONCE(pd->resetting))
		return -EIO;
	return 0;
}

int prawn_counter_count(struct prawn_dev *pd, bool context)
{
	u32 count = prawn_read32(pd, PRAWN_BAR0_COUNTER_COUNT);

	if (count == ~0U)
		return 0;
	return context ? PRAWN_FIELD_GET(COUNTER_COUNT_CONTEXT, count) :
			 PRAWN_FIELD_GET(COUNTER_COUNT_GLOBAL, count);
}

/* context: id, or negative for the card. name: PRAWN_COUNTER_NAME_SIZE. */
int prawn_counter_read(struct prawn_dev *pd, int context, u32 index, u64 *value,
		       char *name)
{
	u32 select;
	int i;

	if (index >= prawn_counter_count(pd, context >= 0))
		return -ENOENT;
	select = PRAWN_FIELD_PUT(COUNTER_SELECT_INDEX, index) |
		 PRAWN_FIELD_PUT(COUNTER_SELECT_CONTEXT, (u32)(context + 1));
	mutex_lock(&pd->counter_lock);
	prawn_write32(pd, PRAWN_BAR0_COUNTER_SELECT, select);
	*value = prawn_read64(pd, PRAWN_BAR0_COUNTER_VALUE);
	for (i = 0; i < PRAWN_BAR0_COUNTER_NAME_COUNT; i++) {
		__le64 word = cpu_to_le64(prawn_read64(
			pd, PRAWN_BAR0_COUNTER_NAME + 8 * i));

		memcpy(name + 8 * i, &word, 8);
	}
	mutex_unlock(&pd->counter_lock);
	name[PRAWN_COUNTER_NAME_SIZE - 1] = 0;
	return 0;
}

/* Whole pages, zeroed. */
int prawn_ring_alloc(struct prawn_dev *pd, struct prawn_ring *ring, size_t size)
{
	ring->size = PAGE_ALIGN(size);
	ring->cpu = dma_alloc_coherent(&pd->pdev->dev, ring->size, &ring->dma,
				       GFP_KERNEL_ACCOUNT);
	return ring->cpu ? 0 : -ENOMEM;
}

void prawn_ring_free(struct prawn_dev *pd, struct prawn_ring *ring)
{
	if (ring->cpu)
		dma_free_coherent(&pd->pdev->dev, ring->size, ring->cpu,
				  ring->dma);
	ring->cpu = NULL;
}
