// SPDX-License-Identifier: Apache-2.0
/* Endpoints, exports, imports, notifications. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <prawn.h>

#include "vmmc_internal.h"

#define RING_LOG2_DEFAULT 10
#define SPIN_NS 200000u /* polls before vmmc_wait() sleeps */

/* getpid() is a system call; a counter that fork() moves is not. */
static unsigned int fork_generation;

static void after_fork(void)
{
	fork_generation++;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}

int vmmc_check_owner(const vmmc_t *v)
{
	return v->fork_generation == fork_generation ? 0 : -EPERM;
}

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int pin_call(void *arg, uint64_t va, uint64_t length)
{
	return card_pin(arg, va, length);
}

static int unpin_call(void *arg, uint64_t va, uint64_t length)
{
	return card_unpin(arg, va, length);
}

VMMC_API int vmmc_open(const char *device, unsigned int ring_log2, vmmc_t **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct pin_ops ops = { .pin = pin_call, .unpin = unpin_call };
	vmmc_t *v;
	int error;

	if (!device)
		device = secure_getenv("VMMC_DEVICE");
	if (!device)
		device = "/dev/prawn0";
	if (!ring_log2)
		ring_log2 = RING_LOG2_DEFAULT;
	if (ring_log2 < PRAWN_RING_LOG2_MIN || ring_log2 > PRAWN_RING_LOG2_MAX)
		return -EINVAL;
	pthread_once(&once, watch_forks);
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->notify_fd = -1;
	v->fork_generation = fork_generation;
	pthread_mutex_init(&v->lock, NULL);
	ops.arg = &v->card;
	error = pins_init(&v->pins, &ops);
	if (error)
		goto err_free;
	error = card_open(&v->card, device, ring_log2);
	if (error)
		goto err_pins;
	v->mask = v->card.commands - 1;
	error = requests_init(v);
	if (error)
		goto err_card;
	*out = v;
	return 0;

err_card:
	requests_free(v);
	card_close(&v->card);
err_pins:
	pins_free(&v->pins);
err_free:
	free(v);
	return error;
}

VMMC_API void vmmc_close(vmmc_t *v)
{
	if (!v)
		return;
	if (vmmc_check_owner(v))
		card_forget(&v->card);
	else
		card_close(&v->card);
	if (v->notify_fd >= 0)
		close(v->notify_fd);
	requests_free(v);
	pins_free(&v->pins);
	for (uint32_t i = 0; i < v->objects; i++) {
		if (v->object[i].used)
			free(v->object[i].handle);
	}
	free(v->object);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

VMMC_API int vmmc_query(vmmc_t *v, struct vmmc_info *info)
{
	const struct card *c = &v->card;

	*info = (struct vmmc_info){
		.abi = c->abi,
		.node = c->node,
		.nodes = c->nodes,
		.context = c->context,
		.epoch = c->epoch,
		.features = c->features,
		.commands = c->commands,
		.notifications = c->notifications,
		.time_mode = c->time_mode,
		.profile_crc = c->profile_crc,
	};
	return 0;
}

VMMC_API int vmmc_time(vmmc_t *v, uint64_t *ps)
{
	int error = vmmc_check_owner(v);

	if (error)
		return error;
	*ps = v->card.doorbell[PRAWN_DOORBELL_TIME / 8];
	return 0;
}

/* ---- objects: cookies that stay harmless after their object has gone ---- */

static int object_new(vmmc_t *v, void *handle, void *user, uint32_t *index)
{
	struct object *bigger;
	uint32_t i;

	for (i = 0; i < v->objects && v->object[i].used; i++)
		;
	if (i == v->objects) {
		uint32_t n = v->objects ? v->objects * 2 : 16;

		bigger = realloc(v->object, n * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		memset(bigger + v->objects, 0,
		       (n - v->objects) * sizeof(*bigger));
		v->object = bigger;
		v->objects = n;
	}
	v->object[i].generation++;
	v->object[i].used = true;
	v->object[i].handle = handle;
	v->object[i].user = user;
	*index = i;
	return 0;
}

static uint64_t object_cookie(const vmmc_t *v, uint32_t index)
{
	return (uint64_t)v->object[index].generation << 32 | index;
}

static const struct object *object_find(const vmmc_t *v, uint64_t cookie)
{
	uint32_t index = (uint32_t)cookie;

	if (index >= v->objects || !v->object[index].used ||
	    v->object[index].generation != cookie >> 32)
		return NULL;
	return &v->object[index];
}

static void object_free(vmmc_t *v, uint32_t index)
{
	pthread_mutex_lock(&v->lock);
	v->object[index].used = false;
	pthread_mutex_unlock(&v->lock);
}

/* A new object and its cookie, under the lock. */
static int object_make(vmmc_t *v, void *handle, void *user, uint32_t *index,
		       uint64_t *cookie)
{
	int error;

	pthread_mutex_lock(&v->lock);
	error = object_new(v, handle, user, index);
	if (!error)
		*cookie = object_cookie(v, *index);
	pthread_mutex_unlock(&v->lock);
	return error;
}

static int check_name(const char *name)
{
	size_t n = name ? strnlen(name, VMMC_NAME_MAX + 1) : 0;

	return n && n <= VMMC_NAME_MAX ? 0 : -EINVAL;
}

/* ---- exports and imports ------------------------------------------------ */

/* The limit is for exports and sources together; sources can be had again. */
static bool make_room(vmmc_t *v)
{
	bool made;

	pthread_mutex_lock(&v->lock);
	made = pins_evict(&v->pins);
	pthread_mutex_unlock(&v->lock);
	return made;
}

VMMC_API int vmmc_export(vmmc_t *v, void *buffer, size_t length,
			 const char *name, unsigned int flags, void *object,
			 vmmc_export_t **out)
{
	const unsigned int known = VMMC_EXPORT_NOTIFY | VMMC_EXPORT_SAME_USER |
				   VMMC_EXPORT_SAME_GROUP;
	vmmc_export_t *e;
	uint64_t cookie;
	int error = vmmc_check_owner(v);

	if (error)
		return error;
	if (flags & ~known || check_name(name) || !length ||
	    (flags & VMMC_EXPORT_SAME_USER && flags & VMMC_EXPORT_SAME_GROUP) ||
	    (uintptr_t)buffer % PIN_PAGE || length % PIN_PAGE)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->v = v;
	e->va = (uintptr_t)buffer;
	e->length = length;
	error = object_make(v, e, object, &e->object, &cookie);
	if (error)
		goto err_free;
	do {
		error = card_export(&v->card, e->va, length, name, flags,
				    cookie, &e->id);
	} while (error == -ENOMEM && make_room(v));
	if (error)
		goto err_object;
	*out = e;
	return 0;

err_object:
	object_free(v, e->object);
err_free:
	free(e);
	return error;
}

VMMC_API int vmmc_unexport(vmmc_export_t *e)
{
	int error = vmmc_check_owner(e->v);

	if (!error)
		error = card_unexport(&e->v->card, e->id);
	object_free(e->v, e->object);
	free(e);
	return error;
}

VMMC_API int vmmc_import(vmmc_t *v, unsigned int node, const char *name,
			 int timeout_ms, void *object, vmmc_import_t **out)
{
	vmmc_import_t *i;
	uint64_t cookie;
	int error = vmmc_check_owner(v);

	if (error)
		return error;
	if (check_name(name))
		return -EINVAL;
	if (node >= v->card.nodes)
		return -EHOSTUNREACH;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->v = v;
	error = object_make(v, i, object, &i->object, &cookie);
	if (error)
		goto err_free;
	error = card_import(&v->card, node, name, timeout_ms, cookie, &i->id,
			    &i->length);
	if (error)
		goto err_object;
	*out = i;
	return 0;

err_object:
	object_free(v, i->object);
err_free:
	free(i);
	return error;
}

VMMC_API int vmmc_unimport(vmmc_import_t *i)
{
	int error = vmmc_check_owner(i->v);

	if (!error) {
		pthread_mutex_lock(&i->v->lock);
		requests_let_go(i->v, i);
		pthread_mutex_unlock(&i->v->lock);
		error = card_unimport(&i->v->card, i->id);
	}
	object_free(i->v, i->object);
	free(i);
	return error;
}

VMMC_API uint64_t vmmc_import_length(const vmmc_import_t *i)
{
	return i->length;
}

/* ---- notifications ------------------------------------------------------ */

static void translate(const struct prawn_notification *e,
		      const struct object *o, struct vmmc_notification *n)
{
	bool lost = e->type == PRAWN_NOTIFICATION_TYPE_IMPORT_ERROR;

	*n = (struct vmmc_notification){
		.type = lost ? VMMC_IMPORT_LOST : VMMC_MESSAGE,
		.error = lost ? VMMC_CARD_ERROR(e->status) : 0,
		.object = o->user,
		.offset = e->offset,
		.length = e->length,
		.immediate = e->immediate,
		.count = e->count,
		.source_node = e->source_node,
		.source_context = e->source_context,
		.delivered_ps = e->delivered,
	};
}

static int poll_locked(vmmc_t *v, struct vmmc_notification *n)
{
	uint32_t entries = v->card.notifications;

	for (;;) {
		const struct prawn_notification *e =
			&v->card.notification[v->noticed & (entries - 1)];
		struct prawn_notification copy;
		const struct object *o;

		if (seq_read_before_entry(&e->seq) != v->noticed + 1)
			return 0;
		copy = *e;
		v->noticed++;
		if (v->noticed - v->told >= entries / 4) {
			v->told = v->noticed;
			doorbell_write(v, PRAWN_DOORBELL_NOTIFY_CONSUMED,
				       v->noticed);
		}
		o = object_find(v, copy.cookie);
		if (!o) /* its export or import has just gone */
			continue;
		translate(&copy, o, n);
		return 1;
	}
}

VMMC_API int vmmc_poll(vmmc_t *v, struct vmmc_notification *n)
{
	int got = vmmc_check_owner(v);

	if (got)
		return got;
	pthread_mutex_lock(&v->lock);
	progress(v);
	got = poll_locked(v, n);
	pthread_mutex_unlock(&v->lock);
	return got;
}

/* What the kernel knows and the card does not. */
static int software_event(vmmc_t *v, struct vmmc_notification *n)
{
	struct card_event e;
	int got = 0;

	while (!got) {
		const struct object *o;
		int error = card_next_event(&v->card, &e);

		if (error) /* none, or the card has gone */
			return error == -EAGAIN ? 0 : error;
		if (e.kind == PRAWN_EVENT_CONTEXT_STOPPED)
			return -EIO;
		pthread_mutex_lock(&v->lock);
		o = object_find(v, e.cookie);
		if (o) {
			*n = (struct vmmc_notification){
				.type = e.kind == PRAWN_EVENT_EXPORT_WITHDRAWN
						? VMMC_EXPORT_LOST
						: VMMC_IMPORT_LOST,
				.error = e.status ? VMMC_CARD_ERROR(e.status)
						  : -ENOTCONN,
				.object = o->user,
			};
			got = 1;
		}
		pthread_mutex_unlock(&v->lock);
	}
	return got;
}

VMMC_API int vmmc_wait(vmmc_t *v, struct vmmc_notification *n, int timeout_ms)
{
	uint64_t start = clock_ns();
	uint64_t limit =
		timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000000u;
	int got = vmmc_check_owner(v);

	while (!got) {
		uint64_t spent;
		uint32_t seen, completed;
		bool sending;
		int error;

		pthread_mutex_lock(&v->lock);
		progress(v);
		got = poll_locked(v, n);
		seen = v->noticed;
		completed = v->completed;
		/* Somebody must go on posting what waits for room. */
		sending = v->is_posting || v->repeat_head != v->repeat_tail;
		pthread_mutex_unlock(&v->lock);
		if (got)
			break;
		spent = clock_ns() - start;
		if (spent >= limit) {
			got = software_event(v, n);
			break;
		}
		if (spent < SPIN_NS) {
			cpu_pause();
			continue;
		}
		error = card_wait(
			&v->card, sending, completed, 1, seen,
			limit == UINT64_MAX ? -1 : (int64_t)(limit - spent));
		if (error && error != -ETIMEDOUT)
			return error;
		got = software_event(v, n);
	}
	return got;
}

VMMC_API int vmmc_rearm(vmmc_t *v)
{
	int error = vmmc_check_owner(v);

	if (error)
		return error;
	pthread_mutex_lock(&v->lock);
	v->told = v->noticed;
	doorbell_write(v, PRAWN_DOORBELL_NOTIFY_CONSUMED, v->noticed);
	doorbell_write(v, PRAWN_DOORBELL_ARM_NOTIFY, v->noticed);
	pthread_mutex_unlock(&v->lock);
	return 0;
}

VMMC_API int vmmc_notify_fd(vmmc_t *v)
{
	int fd = vmmc_check_owner(v);
	int error;

	if (fd)
		return fd;
	pthread_mutex_lock(&v->lock);
	fd = v->notify_fd;
	if (fd < 0) {
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		error = fd < 0 ? -errno : card_eventfd(&v->card, fd);
		if (error) {
			if (fd >= 0)
				close(fd);
			fd = error;
		} else {
			v->notify_fd = fd;
		}
	}
	pthread_mutex_unlock(&v->lock);
	if (fd >= 0)
		vmmc_rearm(v);
	return fd;
}

/* ---- pinning ------------------------------------------------------------ */

VMMC_API int vmmc_pin(vmmc_t *v, const void *address, size_t length)
{
	uint64_t held = 0;
	int error = vmmc_check_owner(v);

	if (error)
		return error;
	if ((uintptr_t)address > UINTPTR_MAX - length)
		return -EFAULT;
	pthread_mutex_lock(&v->lock);
	error = pins_get(&v->pins, (uintptr_t)address, length, &held);
	pins_put(&v->pins, (uintptr_t)address, held);
	pthread_mutex_unlock(&v->lock);
	return error ? error : held == length ? 0 : -ENOMEM;
}

VMMC_API int vmmc_unpin(vmmc_t *v, const void *address, size_t length)
{
	int error = vmmc_check_owner(v);

	if (error)
		return error;
	if ((uintptr_t)address > UINTPTR_MAX - length)
		return -EFAULT;
	pthread_mutex_lock(&v->lock);
	error = pins_drop(&v->pins, (uintptr_t)address, length);
	pthread_mutex_unlock(&v->lock);
	return error;
}
