// SPDX-License-Identifier: Apache-2.0
#include "card.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <prawn.h>

#include <vmmc.h>

static int call(const struct card *c, unsigned long request, void *arg)
{
	return ioctl(c->fd, request, arg) < 0 ? -errno : 0;
}

static int map_region(const struct card *c, const struct prawn_region *r,
		      size_t size, int prot, void **out)
{
	if (r->size < size)
		return -EPROTO;
	*out = mmap(NULL, size, prot, MAP_SHARED, c->fd, (off_t)r->offset);
	if (*out == MAP_FAILED) {
		*out = NULL;
		return -errno;
	}
	return 0;
}

int card_open(struct card *c, const char *path, unsigned int ring_log2)
{
	struct prawn_query q;
	struct prawn_setup s = {
		.command_log2 = ring_log2,
		.notify_log2 = ring_log2,
	};
	void *p[4] = { NULL };
	int error;

	memset(c, 0, sizeof(*c));
	c->fd = open(path, O_RDWR | O_CLOEXEC);
	if (c->fd < 0)
		return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
	memset(&q, 0, sizeof(q));
	error = call(c, PRAWN_IOC_QUERY, &q);
	if (!error && q.card_abi >> 16 != PRAWN_ABI_MAJOR)
		error = -EPROTO;
	if (!error)
		error = call(c, PRAWN_IOC_SETUP, &s);
	if (error == -ENOSPC)
		error = -EBUSY; /* no free context */
	c->commands = 1u << ring_log2;
	c->notifications = 1u << ring_log2;
	if (!error)
		error = map_region(c, &s.region[PRAWN_REGION_COMMAND],
				   c->commands * sizeof(struct prawn_command),
				   PROT_READ | PROT_WRITE, &p[0]);
	if (!error)
		error = map_region(c, &s.region[PRAWN_REGION_COMPLETION],
				   c->commands *
					   sizeof(struct prawn_completion),
				   PROT_READ, &p[1]);
	if (!error)
		error = map_region(c, &s.region[PRAWN_REGION_NOTIFICATION],
				   c->notifications *
					   sizeof(struct prawn_notification),
				   PROT_READ, &p[2]);
	if (!error)
		error = map_region(c, &s.region[PRAWN_REGION_DOORBELL],
				   PRAWN_PAGE_SIZE, PROT_READ | PROT_WRITE,
				   &p[3]);
	c->command = p[0];
	c->completion = p[1];
	c->notification = p[2];
	c->doorbell = p[3];
	if (error) {
		card_close(c);
		return error;
	}
	c->abi = q.card_abi;
	c->node = q.node;
	c->nodes = q.nodes;
	c->epoch = q.epoch;
	c->context = (uint16_t)s.context;
	c->features = q.features;
	c->time_mode = q.time_mode;
	c->profile_crc = q.profile;
	return 0;
}

static void unmap(const volatile void *p, size_t size)
{
	if (p)
		munmap((void *)(uintptr_t)p, size);
}

void card_close(struct card *c)
{
	unmap(c->command, c->commands * sizeof(struct prawn_command));
	unmap(c->completion, c->commands * sizeof(struct prawn_completion));
	unmap(c->notification,
	      c->notifications * sizeof(struct prawn_notification));
	unmap(c->doorbell, PRAWN_PAGE_SIZE);
	close(c->fd);
}

void card_forget(struct card *c)
{
	close(c->fd); /* the mappings were not inherited */
}

int card_pin(struct card *c, uint64_t va, uint64_t length)
{
	struct prawn_pin p = { .address = va, .length = length };
	int error;

	do {
		error = call(c, PRAWN_IOC_PIN, &p);
	} while (error == -EINTR || error == -EAGAIN);
	return error;
}

int card_unpin(struct card *c, uint64_t va, uint64_t length)
{
	struct prawn_unpin p = { .address = va, .length = length };
	int error;

	do {
		error = call(c, PRAWN_IOC_UNPIN, &p);
	} while (error == -EINTR);
	return error;
}

int card_export(struct card *c, uint64_t va, uint64_t length, const char *name,
		unsigned int flags, uint64_t cookie, uint32_t *id)
{
	struct prawn_export e = {
		.address = va,
		.length = length,
		.cookie = cookie,
		.node_mask = ~0ull,
		.access = flags & VMMC_EXPORT_SAME_USER	   ? PRAWN_ACCESS_UID
			  : flags & VMMC_EXPORT_SAME_GROUP ? PRAWN_ACCESS_GID
							   : PRAWN_ACCESS_ANY,
		.flags = flags & VMMC_EXPORT_NOTIFY ? PRAWN_EXPORT_NOTIFY : 0,
	};
	int error;

	_Static_assert(VMMC_NAME_MAX + 1 == PRAWN_NAME_SIZE, "names fit");
	memcpy(e.name, name, strlen(name));
	do {
		error = call(c, PRAWN_IOC_EXPORT, &e);
	} while (error == -EAGAIN);
	*id = e.export_id;
	return error;
}

int card_unexport(struct card *c, uint32_t id)
{
	struct prawn_unexport u = { .export_id = id };
	int error;

	do {
		error = call(c, PRAWN_IOC_UNEXPORT, &u);
	} while (error == -EINTR);
	return error;
}

int card_import(struct card *c, unsigned int node, const char *name,
		int timeout_ms, uint64_t cookie, uint32_t *id, uint64_t *length)
{
	struct prawn_import i = {
		.node = node,
		.timeout_ms =
			timeout_ms < 0 ? 0x7fffffff : (uint32_t)timeout_ms,
		.cookie = cookie,
	};
	int error;

	memcpy(i.name, name, strlen(name));
	error = call(c, PRAWN_IOC_IMPORT, &i);
	*id = i.import_id;
	*length = i.length;
	return error;
}

int card_unimport(struct card *c, uint32_t id)
{
	struct prawn_unimport u = { .import_id = id };
	int error;

	do {
		error = call(c, PRAWN_IOC_UNIMPORT, &u);
	} while (error == -EINTR);
	return error;
}

int card_next_event(struct card *c, struct card_event *out)
{
	struct prawn_event e;
	int error;

	memset(&e, 0, sizeof(e));
	error = call(c, PRAWN_IOC_EVENT, &e);
	out->kind = e.kind;
	out->cookie = e.cookie;
	out->status = e.status;
	return error;
}

int card_wait(struct card *c, int want_completion, uint32_t completions,
	      int want_notification, uint32_t notifications, int64_t timeout_ns)
{
	struct prawn_wait w = {
		.mask = (want_completion ? PRAWN_WAIT_COMPLETION : 0u) |
			(want_notification
				 ? PRAWN_WAIT_NOTIFICATION | PRAWN_WAIT_EVENT
				 : 0u),
		.completion_seen = completions,
		.notification_seen = notifications,
		.timeout_ns = timeout_ns < 0 ? PRAWN_WAIT_FOREVER
					     : (uint64_t)timeout_ns,
	};

	return call(c, PRAWN_IOC_WAIT, &w);
}

int card_eventfd(struct card *c, int fd)
{
	struct prawn_eventfd e = {
		.fd = fd,
		.mask = PRAWN_WAIT_NOTIFICATION | PRAWN_WAIT_EVENT,
	};

	return call(c, PRAWN_IOC_EVENTFD, &e);
}
