// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an access to the card costs a guest, beside QEMU's in-process "edu"
 * device: register reads, posted writes, an interrupt from its trigger to its
 * handler. Takes the place of prawn.ko. Measures once, when loaded; the result
 * is one JSON object in /proc/prawn_bench. A device that is absent is absent
 * there, too.
 */

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "prawn_hw.h"

#define EDU_VENDOR 0x1234
#define EDU_DEVICE 0x11e8
#define EDU_SCRATCH 0x04 /* reads back inverted, does nothing */
#define EDU_IRQ_RAISE 0x60
#define EDU_IRQ_ACK 0x64

#define RING_LOG2 8
#define RING_ENTRIES (1 << RING_LOG2)

static unsigned int samples = 1000;
module_param(samples, uint, 0444);
MODULE_PARM_DESC(samples, "samples of each kind");

struct figures {
	u64 min, median, p99, max; /* ns, times 100 */
	bool valid;
};

struct bench {
	const char *name;
	struct pci_dev *pdev;
	void __iomem *bar0;
	bool card;
	u32 read_register, write_register;
	unsigned int read_batch; /* reads a sample: more for short ones */
	/* interrupts */
	u64 handled_at;
	int vector;
	struct prawn_admin_command *ring;
	struct prawn_admin_ack *acks;
	dma_addr_t ring_dma, acks_dma;
	u32 producer;
	/* results */
	struct figures read, write, write_sustained, irq;
};

static struct bench benches[2];

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static struct figures figures_of(u64 *sample, unsigned int n)
{
	sort(sample, n, sizeof(*sample), compare, NULL);
	return (struct figures){
		.min = sample[0],
		.median = sample[n / 2],
		.p99 = sample[n - 1 - n / 100],
		.max = sample[n - 1],
		.valid = true,
	};
}

static u64 per_item(u64 ns, unsigned int items)
{
	return div_u64(ns * 100, items);
}

static void measure_reads(struct bench *b, u64 *sample)
{
	unsigned int i, k;

	for (i = 0; i < samples; i++) {
		u64 t = ktime_get_ns();

		for (k = 0; k < b->read_batch; k++)
			readl(b->bar0 + b->read_register);
		sample[i] = per_item(ktime_get_ns() - t, b->read_batch);
	}
	b->read = figures_of(sample, samples);
}

/* A few writes at a time: nobody is behind, the guest does not wait. */
static void measure_writes(struct bench *b, u64 *sample)
{
	const unsigned int batch = 16;
	unsigned int i, k;

	for (i = 0; i < samples; i++) {
		u64 t;

		readl(b->bar0 + b->read_register); /* all earlier ones done */
		t = ktime_get_ns();
		for (k = 0; k < batch; k++)
			writel(k, b->bar0 + b->write_register);
		sample[i] = per_item(ktime_get_ns() - t, batch);
	}
	b->write = figures_of(sample, samples);
}

/* As many as there are: the slower of guest and card sets the pace. */
static void measure_sustained_writes(struct bench *b, u64 *sample)
{
	const unsigned int batch = 5000, rounds = 10;
	unsigned int i, k;

	for (i = 0; i < rounds; i++) {
		u64 t = ktime_get_ns();

		for (k = 0; k < batch; k++)
			writel(k, b->bar0 + b->write_register);
		readl(b->bar0 + b->read_register);
		sample[i] = per_item(ktime_get_ns() - t, batch);
	}
	b->write_sustained = figures_of(sample, rounds);
}

static irqreturn_t handler(int irq, void *data)
{
	struct bench *b = data;

	if (!b->card)
		writel(1, b->bar0 + EDU_IRQ_ACK);
	WRITE_ONCE(b->handled_at, ktime_get_ns());
	return IRQ_HANDLED;
}

static void trigger(struct bench *b)
{
	struct prawn_admin_command *command;

	if (!b->card) {
		writel(1, b->bar0 + EDU_IRQ_RAISE);
		return;
	}
	command = &b->ring[b->producer % RING_ENTRIES];
	memset(command, 0, sizeof(*command));
	command->opcode = PRAWN_ADMIN_OPCODE_NOP;
	command->flags = PRAWN_ADMIN_FLAG_INTERRUPT;
	b->producer++;
	writel(b->producer, b->bar0 + PRAWN_BAR0_ADMIN_DOORBELL);
}

static int start_card(struct bench *b)
{
	struct device *dev = &b->pdev->dev;
	int i;

	b->ring = dma_alloc_coherent(dev, RING_ENTRIES * sizeof(*b->ring),
				     &b->ring_dma, GFP_KERNEL);
	b->acks = dma_alloc_coherent(dev, RING_ENTRIES * sizeof(*b->acks),
				     &b->acks_dma, GFP_KERNEL);
	if (!b->ring || !b->acks)
		return -ENOMEM;
	writel(PRAWN_CTRL_RESET_MASK, b->bar0 + PRAWN_BAR0_CTRL);
	for (i = 0; i < 1000; i++) {
		if (readl(b->bar0 + PRAWN_BAR0_STATUS) &
		    PRAWN_STATUS_READY_MASK)
			break;
		usleep_range(100, 1000);
	}
	writeq(b->ring_dma, b->bar0 + PRAWN_BAR0_ADMIN_BASE);
	writeq(b->acks_dma, b->bar0 + PRAWN_BAR0_ADMIN_ACK_BASE);
	writel(RING_LOG2, b->bar0 + PRAWN_BAR0_ADMIN_LOG2);
	writel(PRAWN_CTRL_ENABLE_MASK, b->bar0 + PRAWN_BAR0_CTRL);
	return 0;
}

static int measure_interrupts(struct bench *b, u64 *sample)
{
	unsigned int i;

	for (i = 0; i < samples; i++) {
		u64 t, end;

		WRITE_ONCE(b->handled_at, 0);
		t = ktime_get_ns();
		end = t + NSEC_PER_SEC;
		trigger(b);
		while (!READ_ONCE(b->handled_at)) {
			if (ktime_get_ns() > end)
				return -ETIMEDOUT;
			cpu_relax();
		}
		sample[i] = per_item(b->handled_at - t, 1);
		cond_resched();
	}
	b->irq = figures_of(sample, samples);
	return 0;
}

static int open_device(struct bench *b, const char *name, u32 vendor,
		       u32 device)
{
	int err;

	b->name = name;
	b->pdev = pci_get_device(vendor, device, NULL);
	if (!b->pdev)
		return -ENODEV;
	err = pci_enable_device(b->pdev);
	if (err)
		goto put;
	pci_set_master(b->pdev);
	dma_set_mask_and_coherent(&b->pdev->dev, DMA_BIT_MASK(64));
	b->bar0 = pci_iomap(b->pdev, 0, 0);
	if (b->bar0)
		return 0;
	err = -ENOMEM;
	pci_disable_device(b->pdev);
put:
	pci_dev_put(b->pdev);
	b->pdev = NULL;
	return err;
}

static void close_device(struct bench *b)
{
	struct device *dev = &b->pdev->dev;

	if (b->card)
		writel(PRAWN_CTRL_RESET_MASK, b->bar0 + PRAWN_BAR0_CTRL);
	pci_clear_master(b->pdev);
	if (b->ring)
		dma_free_coherent(dev, RING_ENTRIES * sizeof(*b->ring), b->ring,
				  b->ring_dma);
	if (b->acks)
		dma_free_coherent(dev, RING_ENTRIES * sizeof(*b->acks), b->acks,
				  b->acks_dma);
	pci_iounmap(b->pdev, b->bar0);
	pci_disable_device(b->pdev);
	pci_dev_put(b->pdev);
	b->pdev = NULL;
}

static int interrupts(struct bench *b, u64 *sample)
{
	int err;

	err = pci_alloc_irq_vectors(b->pdev, 1, 1, PCI_IRQ_MSI | PCI_IRQ_MSIX);
	if (err < 0)
		return err;
	b->vector = pci_irq_vector(b->pdev, 0);
	err = request_irq(b->vector, handler, 0, "prawn_bench", b);
	if (!err) {
		if (b->card)
			err = start_card(b);
		if (!err)
			err = measure_interrupts(b, sample);
		free_irq(b->vector, b);
	}
	pci_free_irq_vectors(b->pdev);
	return err;
}

static void run(struct bench *b, u64 *sample)
{
	int err;

	measure_reads(b, sample);
	measure_writes(b, sample);
	measure_sustained_writes(b, sample);
	err = interrupts(b, sample);
	if (err)
		pr_warn("prawn_bench: no interrupts of %s: %d\n", b->name, err);
	close_device(b);
}

static void show(struct seq_file *f, const char *name, const struct figures *v,
		 bool first)
{
	if (!v->valid)
		return;
	seq_printf(f,
		   "%s\"%s\":{\"min\":%llu.%02llu,\"median\":%llu.%02llu,"
		   "\"p99\":%llu.%02llu,\"max\":%llu.%02llu}",
		   first ? "" : ",", name, v->min / 100, v->min % 100,
		   v->median / 100, v->median % 100, v->p99 / 100, v->p99 % 100,
		   v->max / 100, v->max % 100);
}

static int show_all(struct seq_file *f, void *unused)
{
	bool first = true;
	int i;

	seq_puts(f, "{");
	for (i = 0; i < 2; i++) {
		struct bench *b = &benches[i];

		if (!b->read.valid)
			continue;
		seq_printf(f, "%s\"%s\":{", first ? "" : ",", b->name);
		show(f, "read_ns", &b->read, true);
		show(f, "write_ns", &b->write, false);
		show(f, "write_sustained_ns", &b->write_sustained, false);
		show(f, "irq_ns", &b->irq, false);
		seq_puts(f, "}");
		first = false;
	}
	seq_puts(f, "}\n");
	return 0;
}

static int __init prawn_bench_init(void)
{
	u64 *sample;

	if (samples < 100)
		samples = 100;
	sample = kvmalloc_array(samples, sizeof(*sample), GFP_KERNEL);
	if (!sample)
		return -ENOMEM;
	benches[0].read_register = EDU_SCRATCH;
	benches[0].write_register = EDU_SCRATCH;
	benches[0].read_batch = 16;
	benches[1].card = true;
	benches[1].read_register = PRAWN_BAR0_ID;
	benches[1].write_register = PRAWN_BAR0_COUNTER_SELECT;
	benches[1].read_batch = 1;
	if (!open_device(&benches[0], "edu", EDU_VENDOR, EDU_DEVICE))
		run(&benches[0], sample);
	if (!open_device(&benches[1], "card", PRAWN_PCI_VENDOR_ID,
			 PRAWN_PCI_DEVICE_ID))
		run(&benches[1], sample);
	kvfree(sample);
	if (!proc_create_single("prawn_bench", 0444, NULL, show_all))
		return -ENOMEM;
	return 0;
}

static void __exit prawn_bench_exit(void)
{
	remove_proc_entry("prawn_bench", NULL);
}

module_init(prawn_bench_init);
module_exit(prawn_bench_exit);
MODULE_DESCRIPTION("Cost of the simulated card's accesses, seen by a guest");
MODULE_LICENSE("GPL");
