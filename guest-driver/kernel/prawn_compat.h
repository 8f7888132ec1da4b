/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that the driver builds for (6.1 and later),
 * under the names of the newest.
 */

#ifndef PRAWN_COMPAT_H
#define PRAWN_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>

#ifndef PCI_IRQ_INTX
#define PCI_IRQ_INTX PCI_IRQ_LEGACY
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define PRAWN_DEVNODE_CONST
#else
#define PRAWN_DEVNODE_CONST const
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set,
				vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags & ~clear) | set;
}
#endif

/* The caller holds mmap_lock for reading; it is never dropped. */
static inline long prawn_gup(unsigned long va, unsigned long pages,
			     unsigned int flags, struct page **out)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return pin_user_pages(va, pages, flags, out, NULL);
#else
	return pin_user_pages(va, pages, flags, out);
#endif
}

static inline long prawn_gup_remote(struct mm_struct *mm, unsigned long va,
				    unsigned int flags, struct page **out)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return pin_user_pages_remote(mm, va, 1, flags, out, NULL, NULL);
#else
	return pin_user_pages_remote(mm, va, 1, flags, out, NULL);
#endif
}

static inline void prawn_eventfd_signal(struct eventfd_ctx *efd)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	eventfd_signal(efd, 1);
#else
	eventfd_signal(efd);
#endif
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
/* The old structure has no place for its owner. */
struct prawn_shrinker {
	struct shrinker shrinker;
	void *owner;
};

static inline void *prawn_shrinker_owner(struct shrinker *shrinker)
{
	return container_of(shrinker, struct prawn_shrinker, shrinker)->owner;
}

static inline struct shrinker *prawn_shrinker_alloc(void *owner)
{
	struct prawn_shrinker *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	s->owner = owner;
	s->shrinker.seeks = DEFAULT_SEEKS;
	return &s->shrinker;
}

static inline int prawn_shrinker_register(struct shrinker *shrinker)
{
	return register_shrinker(shrinker, "prawn");
}

static inline void prawn_shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker); /* does nothing if not registered */
	kfree(container_of(shrinker, struct prawn_shrinker, shrinker));
}
#else
static inline void *prawn_shrinker_owner(struct shrinker *shrinker)
{
	return shrinker->private_data;
}

static inline struct shrinker *prawn_shrinker_alloc(void *owner)
{
	struct shrinker *shrinker = shrinker_alloc(0, "prawn");

	if (shrinker)
		shrinker->private_data = owner;
	return shrinker;
}

static inline int prawn_shrinker_register(struct shrinker *shrinker)
{
	shrinker_register(shrinker);
	return 0;
}

static inline void prawn_shrinker_free(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}
#endif

#endif
