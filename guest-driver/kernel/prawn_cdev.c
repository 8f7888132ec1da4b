// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/prawnN: open, release, ioctl, mmap.
 *
 * Every operation runs inside the device's srcu and looks at "gone" there, so remove
 * can set it, wait for the operations under way (it wakes the sleepers), and
 * take the device apart. Mappings are filled by page faults, for the same
 * reason: a fault after that finds nothing to map.
 */

#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "prawn.h"

#define PRAWN_MINORS 64

static DEFINE_IDA(prawn_minors);
static dev_t prawn_devt;

static char *devnode(PRAWN_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660; /* the group is up to 60-prawn.rules */
	return NULL;
}

static struct class prawn_class = {
	.name = "prawn",
	.devnode = devnode,
};

static int prawn_open(struct inode *inode, struct file *file)
{
	struct prawn_dev *pd =
		container_of(inode->i_cdev, struct prawn_dev, cdev);
	struct prawn_ctx *ctx;
	int idx, err;

	idx = srcu_read_lock(&pd->srcu);
	err = prawn_usable(pd);
	if (err)
		goto out;
	err = -ENOMEM;
	ctx = prawn_ctx_alloc(pd);
	if (!ctx)
		goto out;
	ctx->mapping = file->f_mapping;
	file->private_data = ctx;
	mutex_lock(&pd->file_lock);
	list_add_tail(&ctx->link, &pd->files);
	mutex_unlock(&pd->file_lock);
	err = nonseekable_open(inode, file);
out:
	srcu_read_unlock(&pd->srcu, idx);
	return err;
}

static int prawn_release(struct inode *inode, struct file *file)
{
	struct prawn_ctx *ctx = file->private_data;
	struct prawn_dev *pd = ctx->pd;
	int idx;

	idx = srcu_read_lock(&pd->srcu);
	/* If remove or reset is at it, this waits until it is done with us. */
	mutex_lock(&pd->file_lock);
	list_del_init(&ctx->link);
	mutex_unlock(&pd->file_lock);
	prawn_ctx_down(ctx);
	srcu_read_unlock(&pd->srcu, idx);
	prawn_ctx_put(ctx);
	return 0;
}

/*
 * All contexts go, the files stay open and useless. The caller has made new
 * operations fail and waited for the old ones.
 */
void prawn_files_down(struct prawn_dev *pd)
{
	struct prawn_ctx *ctx;

	mutex_lock(&pd->file_lock);
	list_for_each_entry(ctx, &pd->files, link) {
		WRITE_ONCE(ctx->lost, true);
		unmap_mapping_range(ctx->mapping, 0, 0, 1);
		prawn_ctx_down(ctx);
	}
	mutex_unlock(&pd->file_lock);
}

static int do_query(struct prawn_ctx *ctx, struct prawn_query *arg)
{
	struct prawn_dev *pd = ctx->pd;

	memset(arg, 0, sizeof(*arg));
	arg->uapi = PRAWN_UAPI_VERSION;
	arg->card_abi = pd->abi;
	arg->features = pd->features;
	arg->node = pd->node;
	arg->nodes = pd->nodes;
	arg->epoch = pd->epoch;
	arg->vectors = pd->vectors;
	arg->time_mode = prawn_read32(pd, PRAWN_BAR0_TIME_MODE);
	arg->profile = prawn_read32(pd, PRAWN_BAR0_PROFILE);
	arg->contexts = pd->contexts;
	arg->opt_entries = pd->opt_entries;
	arg->ipt_entries = pd->ipt_entries;
	arg->max_message = PRAWN_MAX_MESSAGE;
	arg->ptp_index = READ_ONCE(pd->ptp_index);
	arg->context = PRAWN_NO_CONTEXT;
	mutex_lock(&ctx->op_lock);
	if (ctx->up) {
		arg->context = ctx->id;
		arg->command_log2 = ctx->command_log2;
		arg->notify_log2 = ctx->notify_log2;
		arg->pinned = (u64)READ_ONCE(ctx->pinned) << PAGE_SHIFT;
	}
	prawn_ctx_regions(ctx, arg->region);
	mutex_unlock(&ctx->op_lock);
	return 0;
}

static int do_counter(struct prawn_ctx *ctx, struct prawn_counter *arg)
{
	int context = -1;

	BUILD_BUG_ON(PRAWN_COUNTER_NAME_BYTES != PRAWN_COUNTER_NAME_SIZE);
	if (arg->rsvd || arg->scope > PRAWN_COUNTER_CONTEXT)
		return -EINVAL;
	if (arg->scope == PRAWN_COUNTER_CONTEXT) {
		if (!READ_ONCE(ctx->up))
			return -ENOTCONN;
		context = ctx->id;
	}
	return prawn_counter_read(ctx->pd, context, arg->index, &arg->value,
				  arg->name);
}

union prawn_arg {
	struct prawn_query query;
	struct prawn_setup setup;
	struct prawn_pin pin;
	struct prawn_unpin unpin;
	struct prawn_export export;
	struct prawn_unexport unexport;
	struct prawn_import import;
	struct prawn_unimport unimport;
	struct prawn_wait wait;
	struct prawn_eventfd eventfd;
	struct prawn_event event;
	struct prawn_counter counter;
};

#define ANY 1u  /* works before SETUP */
#define LAST 2u /* works for a context that was stopped, to clean up */

static unsigned int needs(unsigned int cmd)
{
	switch (cmd) {
	case PRAWN_IOC_QUERY:
	case PRAWN_IOC_COUNTER:
		return ANY | LAST;
	case PRAWN_IOC_SETUP:
		return ANY;
	case PRAWN_IOC_UNPIN:
	case PRAWN_IOC_UNEXPORT:
	case PRAWN_IOC_UNIMPORT:
	case PRAWN_IOC_EVENT:
	case PRAWN_IOC_WAIT:
		return LAST;
	default:
		return 0;
	}
}

/* Those that change the context take turns; IMPORT and WAIT may sleep long. */
static int locked_ioctl(struct prawn_ctx *ctx, unsigned int cmd,
			union prawn_arg *arg)
{
	int err;

	if (mutex_lock_interruptible(&ctx->op_lock))
		return -EINTR;
	switch (cmd) {
	case PRAWN_IOC_SETUP:
		err = prawn_ctx_setup(ctx, &arg->setup);
		break;
	case PRAWN_IOC_PIN:
		err = prawn_pin(ctx, &arg->pin);
		break;
	case PRAWN_IOC_UNPIN:
		err = prawn_unpin(ctx, &arg->unpin);
		break;
	case PRAWN_IOC_EXPORT:
		err = prawn_export(ctx, &arg->export);
		break;
	default:
		err = arg->unexport.rsvd ?
			      -EINVAL :
			      prawn_unexport(ctx, arg->unexport.export_id);
		break;
	}
	mutex_unlock(&ctx->op_lock);
	return err;
}

static int do_ioctl(struct prawn_ctx *ctx, unsigned int cmd,
		    union prawn_arg *arg)
{
	switch (cmd) {
	case PRAWN_IOC_QUERY:
		return do_query(ctx, &arg->query);
	case PRAWN_IOC_SETUP:
	case PRAWN_IOC_PIN:
	case PRAWN_IOC_UNPIN:
	case PRAWN_IOC_EXPORT:
	case PRAWN_IOC_UNEXPORT:
		return locked_ioctl(ctx, cmd, arg);
	case PRAWN_IOC_IMPORT:
		return prawn_import(ctx, &arg->import);
	case PRAWN_IOC_UNIMPORT:
		return arg->unimport.rsvd ?
			       -EINVAL :
			       prawn_unimport(ctx, arg->unimport.import_id);
	case PRAWN_IOC_WAIT:
		return prawn_wait(ctx, &arg->wait);
	case PRAWN_IOC_EVENTFD:
		return prawn_eventfd(ctx, &arg->eventfd);
	case PRAWN_IOC_EVENT:
		return prawn_event_take(ctx, &arg->event);
	case PRAWN_IOC_COUNTER:
		return do_counter(ctx, &arg->counter);
	default:
		return -ENOTTY;
	}
}

static bool known(unsigned int cmd)
{
	switch (cmd) {
	case PRAWN_IOC_QUERY:
	case PRAWN_IOC_SETUP:
	case PRAWN_IOC_PIN:
	case PRAWN_IOC_UNPIN:
	case PRAWN_IOC_EXPORT:
	case PRAWN_IOC_UNEXPORT:
	case PRAWN_IOC_IMPORT:
	case PRAWN_IOC_UNIMPORT:
	case PRAWN_IOC_WAIT:
	case PRAWN_IOC_EVENTFD:
	case PRAWN_IOC_EVENT:
	case PRAWN_IOC_COUNTER:
		return true;
	default:
		return false;
	}
}

static int checked_ioctl(struct prawn_ctx *ctx, unsigned int cmd,
			 union prawn_arg *arg)
{
	unsigned int need = needs(cmd);
	int err = prawn_usable(ctx->pd);

	if (err)
		return err;
	if (READ_ONCE(ctx->lost))
		return -EIO;
	if (READ_ONCE(ctx->error) && !(need & LAST))
		return -EIO;
	if (!READ_ONCE(ctx->up) && !(need & ANY))
		return -ENOTCONN;
	return do_ioctl(ctx, cmd, arg);
}

/* Results go back even with an error: PIN says how far it came. */
static long prawn_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	struct prawn_ctx *ctx = file->private_data;
	void __user *ptr = (void __user *)user;
	size_t size = _IOC_SIZE(cmd);
	union prawn_arg arg = {};
	int idx;
	int err;

	if (!known(cmd))
		return -ENOTTY;
	if (current->mm != ctx->mm)
		return -EPERM;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&arg, ptr, size))
		return -EFAULT;
	idx = srcu_read_lock(&ctx->pd->srcu);
	err = checked_ioctl(ctx, cmd, &arg);
	srcu_read_unlock(&ctx->pd->srcu, idx);
	if (_IOC_DIR(cmd) & _IOC_READ && copy_to_user(ptr, &arg, size))
		return -EFAULT;
	return err;
}

/* Page frame of a byte of a ring, however the DMA layer came by the memory. */
static unsigned long ring_pfn(const struct prawn_ring *ring, size_t byte)
{
	void *p = ring->cpu + byte;

	return is_vmalloc_addr(p) ? vmalloc_to_pfn(p) : PHYS_PFN(virt_to_phys(p));
}

static vm_fault_t prawn_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct prawn_ctx *ctx = vma->vm_file->private_data;
	vm_fault_t result = VM_FAULT_SIGBUS;
	unsigned int region = vmf->pgoff >> (32 - PAGE_SHIFT);
	size_t byte = (vmf->pgoff << PAGE_SHIFT) & U32_MAX;
	int idx;

	idx = srcu_read_lock(&ctx->pd->srcu);
	/* "lost" alone would come too late: it is set when nobody waits for us */
	if (!READ_ONCE(ctx->pd->gone) && !READ_ONCE(ctx->pd->resetting) &&
	    !READ_ONCE(ctx->lost) && READ_ONCE(ctx->up)) {
		phys_addr_t bar2 = pci_resource_start(ctx->pd->pdev, 2);

		if (region == PRAWN_REGION_DOORBELL && !byte)
			result = vmf_insert_pfn(
				vma, vmf->address,
				PHYS_PFN(bar2) +
					ctx->id * (PRAWN_PAGE_SIZE >>
						   PAGE_SHIFT));
		else if (region < ARRAY_SIZE(ctx->ring) &&
			 byte < ctx->ring[region].size)
			result = vmf_insert_pfn(
				vma, vmf->address,
				ring_pfn(&ctx->ring[region], byte));
	}
	srcu_read_unlock(&ctx->pd->srcu, idx);
	return result;
}

static const struct vm_operations_struct prawn_vm_ops = {
	.fault = prawn_fault,
};

static int prawn_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct prawn_ctx *ctx = file->private_data;
	unsigned int region = vma->vm_pgoff >> (32 - PAGE_SHIFT);
	u64 byte = ((u64)vma->vm_pgoff << PAGE_SHIFT) & U32_MAX;
	u64 size = vma->vm_end - vma->vm_start;
	struct prawn_region regions[PRAWN_REGIONS];
	vm_flags_t clear = VM_MAYEXEC;
	int err = prawn_usable(ctx->pd);

	if (current->mm != ctx->mm)
		return -EPERM;
	if (err)
		return err;
	if (READ_ONCE(ctx->lost))
		return -EIO;
	if (!READ_ONCE(ctx->up))
		return -ENOTCONN;
	/* sizes do not change once the context is up */
	prawn_ctx_regions(ctx, regions);
	if (region >= PRAWN_REGIONS || byte > regions[region].size ||
	    size > regions[region].size - byte || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	if (region == PRAWN_REGION_COMPLETION ||
	    region == PRAWN_REGION_NOTIFICATION) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		clear |= VM_MAYWRITE;
	}
	if (region == PRAWN_REGION_DOORBELL)
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vm_flags_mod(vma,
		     VM_PFNMAP | VM_IO | VM_DONTCOPY | VM_DONTEXPAND |
			     VM_DONTDUMP,
		     clear);
	vma->vm_ops = &prawn_vm_ops;
	return 0;
}

static const struct file_operations prawn_fops = {
	.owner = THIS_MODULE,
	.open = prawn_open,
	.release = prawn_release,
	.unlocked_ioctl = prawn_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = prawn_mmap,
	.llseek = noop_llseek,
};

static void minor_put(struct prawn_dev *pd)
{
	if (pd->minor >= 0)
		ida_free(&prawn_minors, pd->minor);
	pd->minor = -1;
}

static void dev_release(struct device *dev)
{
	struct prawn_dev *pd = container_of(dev, struct prawn_dev, dev);

	minor_put(pd);
	cleanup_srcu_struct(&pd->srcu);
	xa_destroy(&pd->exports);
	xa_destroy(&pd->imports);
	xa_destroy(&pd->importers);
	pci_dev_put(pd->pdev);
	kfree(pd);
}

/* Undone by put_device(&pd->dev). */
struct prawn_dev *prawn_dev_alloc(struct pci_dev *pdev)
{
	struct prawn_dev *pd = kzalloc(sizeof(*pd), GFP_KERNEL);
	int err;

	if (!pd)
		return ERR_PTR(-ENOMEM);
	err = init_srcu_struct(&pd->srcu);
	if (err)
		goto err_free;
	pd->minor = ida_alloc_max(&prawn_minors, PRAWN_MINORS - 1, GFP_KERNEL);
	if (pd->minor < 0) {
		err = pd->minor;
		goto err_srcu;
	}
	pd->pdev = pci_dev_get(pdev);
	pd->ptp_index = PRAWN_NO_PTP;
	spin_lock_init(&pd->admin.lock);
	init_waitqueue_head(&pd->admin.wait);
	init_waitqueue_head(&pd->mgmt_wait);
	init_waitqueue_head(&pd->rdv_wait);
	mutex_init(&pd->file_lock);
	INIT_LIST_HEAD(&pd->files);
	spin_lock_init(&pd->id_lock);
	mutex_init(&pd->rdv_lock);
	mutex_init(&pd->counter_lock);
	hash_init(pd->names);
	xa_init_flags(&pd->exports, XA_FLAGS_ALLOC);
	xa_init_flags(&pd->imports, XA_FLAGS_ALLOC);
	xa_init(&pd->importers);
	INIT_LIST_HEAD(&pd->withdrawals);
	INIT_DELAYED_WORK(&pd->withdraw_work, prawn_withdraw_work);
	INIT_DELAYED_WORK(&pd->ping_work, prawn_ping_work);
	INIT_DELAYED_WORK(&pd->watch_work, prawn_watch_work);

	device_initialize(&pd->dev);
	pd->dev.class = &prawn_class;
	pd->dev.parent = &pdev->dev;
	pd->dev.devt = MKDEV(MAJOR(prawn_devt), pd->minor);
	pd->dev.release = dev_release;
	err = dev_set_name(&pd->dev, "prawn%d", pd->minor);
	if (err) {
		put_device(&pd->dev);
		return ERR_PTR(err);
	}
	cdev_init(&pd->cdev, &prawn_fops);
	pd->cdev.owner = THIS_MODULE;
	return pd;

err_srcu:
	cleanup_srcu_struct(&pd->srcu);
err_free:
	kfree(pd);
	return ERR_PTR(err);
}

int prawn_dev_publish(struct prawn_dev *pd)
{
	return cdev_device_add(&pd->cdev, &pd->dev);
}

/* The number is free again, though old files may still be open. */
void prawn_dev_unpublish(struct prawn_dev *pd)
{
	cdev_device_del(&pd->cdev, &pd->dev);
	minor_put(pd);
}

int prawn_cdev_register(void)
{
	int err = alloc_chrdev_region(&prawn_devt, 0, PRAWN_MINORS, "prawn");

	if (err)
		return err;
	err = class_register(&prawn_class);
	if (err)
		unregister_chrdev_region(prawn_devt, PRAWN_MINORS);
	return err;
}

void prawn_cdev_unregister(void)
{
	class_unregister(&prawn_class);
	unregister_chrdev_region(prawn_devt, PRAWN_MINORS);
	ida_destroy(&prawn_minors);
}
