// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts. MSI-X: vector 0 is the kernel's (events, acknowledgements), the
 * others are dealt out to contexts, several to one if need be. Without MSI-X
 * (or with a single vector, which leaves none for contexts) INTx serves all.
 */

#include <linux/interrupt.h>

#include "prawn.h"

static void kernel_news(struct prawn_dev *pd)
{
	wake_up_all(&pd->admin.wait);
	queue_work(pd->wq, &pd->event_work);
}

/* vector 0: all contexts. A process wakes, looks, and sleeps again if need be. */
static void context_news(struct prawn_dev *pd, u32 vector)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&pd->id_lock, flags);
	for (i = 0; i < pd->contexts; i++) {
		struct prawn_ctx *ctx = pd->by_id[i];

		if (ctx && (!vector || ctx->vector == vector))
			prawn_ctx_kick(ctx);
	}
	spin_unlock_irqrestore(&pd->id_lock, flags);
}

static irqreturn_t kernel_irq(int irq, void *data)
{
	struct prawn_vector *vector = data;

	kernel_news(vector->pd);
	return IRQ_HANDLED;
}

static irqreturn_t context_irq(int irq, void *data)
{
	struct prawn_vector *vector = data;

	context_news(vector->pd, vector->index);
	return IRQ_HANDLED;
}

static irqreturn_t intx_irq(int irq, void *data)
{
	struct prawn_dev *pd = ((struct prawn_vector *)data)->pd;
	u32 cause = prawn_read32(pd, PRAWN_BAR0_INT_CAUSE);

	if (!cause || cause == ~0U)
		return IRQ_NONE;
	prawn_write32(pd, PRAWN_BAR0_INT_CAUSE, cause);
	kernel_news(pd);
	if (cause & PRAWN_INT_CAUSE_CONTEXT_MASK)
		context_news(pd, 0);
	return IRQ_HANDLED;
}

/* What CONTEXT_ENABLE is told; the card has 1 to 15 for contexts. */
u32 prawn_irq_vector(struct prawn_dev *pd, u32 context)
{
	u32 count = pd->msix ? pd->vectors - 1 : PRAWN_VECTORS - 1;

	return 1 + context % count;
}

int prawn_irq_init(struct prawn_dev *pd)
{
	struct pci_dev *pdev = pd->pdev;
	unsigned int i;
	int err;

	err = pci_alloc_irq_vectors(pdev, 2, PRAWN_VECTORS, PCI_IRQ_MSIX);
	pd->msix = err > 0;
	if (!pd->msix)
		err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_INTX);
	if (err < 0)
		return dev_err_probe(&pdev->dev, err, "no interrupts\n");
	pd->vectors = err;

	for (i = 0; i < pd->vectors; i++) {
		irq_handler_t handler = !pd->msix ? intx_irq :
					i	  ? context_irq :
						    kernel_irq;

		pd->vector[i].pd = pd;
		pd->vector[i].index = i;
		err = request_irq(pci_irq_vector(pdev, i), handler,
				  pd->msix ? 0 : IRQF_SHARED,
				  dev_name(&pd->dev), &pd->vector[i]);
		if (err)
			break;
		pd->irqs++;
	}
	if (err) {
		prawn_irq_exit(pd);
		return dev_err_probe(&pdev->dev, err,
				     "interrupt vector %u refused\n", i);
	}
	return 0;
}

void prawn_irq_exit(struct prawn_dev *pd)
{
	while (pd->irqs) {
		pd->irqs--;
		free_irq(pci_irq_vector(pd->pdev, pd->irqs),
			 &pd->vector[pd->irqs]);
	}
	pci_free_irq_vectors(pd->pdev);
}
