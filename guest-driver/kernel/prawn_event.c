// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel event ring. One work item on an ordered queue takes the entries in
 * turn and may sleep in each; the ring is short and the card refuses management
 * messages that find it full, which their senders repeat.
 */

#include <linux/io.h>

#include "prawn.h"

static void handle(struct prawn_dev *pd, const struct prawn_kernel_event *ev)
{
	u16 node = le16_to_cpu(ev->node);
	u16 epoch = le16_to_cpu(ev->epoch);

	switch (ev->type) {
	case PRAWN_EVENT_TYPE_MGMT:
		prawn_mgmt_receive(pd, node, epoch, ev->data,
				   le32_to_cpu(ev->length));
		break;
	case PRAWN_EVENT_TYPE_PEER_UP:
	case PRAWN_EVENT_TYPE_PEER_DOWN:
		prawn_peer_changed(pd, node, epoch,
				   ev->type == PRAWN_EVENT_TYPE_PEER_UP);
		break;
	case PRAWN_EVENT_TYPE_CONTEXT_ERROR:
		prawn_ctx_error(pd, le16_to_cpu(ev->context),
				(u32)le64_to_cpu(ev->value));
		break;
	case PRAWN_EVENT_TYPE_FIFO_THRESHOLD:
	case PRAWN_EVENT_TYPE_FIRMWARE:
	case PRAWN_EVENT_TYPE_UTLB_EVICT:
	case PRAWN_EVENT_TYPE_UTLB_MISS:
		/* modes that this driver does not switch on */
		dev_dbg(&pd->pdev->dev, "event %u ignored\n", ev->type);
		break;
	default:
		dev_warn_ratelimited(&pd->pdev->dev, "unknown event %u\n",
				     ev->type);
	}
}

/* Copies the next event out and gives its entry back; false if there is none. */
static bool take(struct prawn_dev *pd, struct prawn_kernel_event *ev)
{
	struct prawn_kernel_event *ring = pd->events.cpu;
	struct prawn_kernel_event *entry;

	entry = &ring[pd->event_head % (1 << PRAWN_EVENT_LOG2)];
	if (le32_to_cpu(READ_ONCE(entry->seq)) != pd->event_head + 1)
		return false;
	dma_rmb();
	*ev = *entry;
	pd->event_head++;
	prawn_write32(pd, PRAWN_BAR0_EVENT_CONSUMED, pd->event_head);
	return true;
}

/* EVENT_CONSUMED re-arms: an entry that comes after the last look interrupts. */
static void event_work(struct work_struct *work)
{
	struct prawn_dev *pd = container_of(work, struct prawn_dev, event_work);
	struct prawn_kernel_event ev;

	while (!prawn_usable(pd) && take(pd, &ev))
		handle(pd, &ev);
	if (pd->features & PRAWN_FEATURES_CHECKER_MASK && !prawn_usable(pd) &&
	    prawn_read32(pd, PRAWN_BAR0_STATUS) & PRAWN_STATUS_CHECK_FAILED_MASK)
		dev_err_ratelimited(&pd->pdev->dev,
				    "the checker saw a DMA outside of the grants\n");
}

int prawn_event_init(struct prawn_dev *pd)
{
	int err;

	err = prawn_ring_alloc(pd, &pd->events,
			       sizeof(struct prawn_kernel_event)
				       << PRAWN_EVENT_LOG2);
	if (err)
		return err;
	INIT_WORK(&pd->event_work, event_work);
	pd->wq = alloc_ordered_workqueue("%s", 0, dev_name(&pd->dev));
	if (!pd->wq) {
		prawn_ring_free(pd, &pd->events);
		return -ENOMEM;
	}
	return 0;
}

void prawn_event_exit(struct prawn_dev *pd)
{
	destroy_workqueue(pd->wq);
	prawn_ring_free(pd, &pd->events);
}
