// SPDX-License-Identifier: Apache-2.0
#include "hostile_raw.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

enum { PATIENCE_MS = 30000 }; /* a loaded machine under TCG */

int raw_ioctl(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? -errno : 0;
}

int raw_open(struct raw *r)
{
	return raw_open_at(r, RAW_DEVICE);
}

int raw_open_at(struct raw *r, const char *device)
{
	memset(r, 0, sizeof(*r));
	r->fd = open(device, O_RDWR | O_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	return raw_ioctl(r->fd, PRAWN_IOC_QUERY, &r->query);
}

static void *map(struct raw *r, unsigned region, int protection)
{
	const struct prawn_region *where = &r->setup.region[region];
	void *p = mmap(NULL, where->size, protection, MAP_SHARED, r->fd,
		       (off_t)where->offset);

	return p == MAP_FAILED ? NULL : p;
}

int raw_setup(struct raw *r, unsigned ring_log2)
{
	int error;

	memset(&r->setup, 0, sizeof(r->setup));
	r->setup.command_log2 = ring_log2;
	r->setup.notify_log2 = ring_log2;
	error = raw_ioctl(r->fd, PRAWN_IOC_SETUP, &r->setup);
	if (error)
		return error;
	r->size = 1u << ring_log2;
	r->command = map(r, PRAWN_REGION_COMMAND, PROT_READ | PROT_WRITE);
	r->completion = map(r, PRAWN_REGION_COMPLETION, PROT_READ);
	r->notification = map(r, PRAWN_REGION_NOTIFICATION, PROT_READ);
	r->doorbell = map(r, PRAWN_REGION_DOORBELL, PROT_READ | PROT_WRITE);
	if (!r->command || !r->completion || !r->notification || !r->doorbell)
		return -errno;
	return 0;
}

static void unmap(struct raw *r, const volatile void *p, unsigned region)
{
	if (p)
		munmap((void *)(uintptr_t)p, r->setup.region[region].size);
}

void raw_unmap(struct raw *r)
{
	unmap(r, r->command, PRAWN_REGION_COMMAND);
	unmap(r, r->completion, PRAWN_REGION_COMPLETION);
	unmap(r, r->notification, PRAWN_REGION_NOTIFICATION);
	unmap(r, r->doorbell, PRAWN_REGION_DOORBELL);
	r->command = NULL;
	r->completion = NULL;
	r->notification = NULL;
	r->doorbell = NULL;
}

void raw_close(struct raw *r)
{
	raw_unmap(r);
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

void raw_start(struct raw *r, unsigned ring_log2)
{
	int error = raw_open(r);

	if (error)
		tap_bail("%s: %s", RAW_DEVICE, strerror(-error));
	error = raw_setup(r, ring_log2);
	if (error)
		tap_bail("no context: %s", strerror(-error));
}

int raw_pin(struct raw *r, const void *address, uint64_t length)
{
	struct prawn_pin p = { .address = (uintptr_t)address,
			       .length = length };

	return raw_ioctl(r->fd, PRAWN_IOC_PIN, &p);
}

int raw_unpin(struct raw *r, const void *address, uint64_t length)
{
	struct prawn_unpin p = { .address = (uintptr_t)address,
				 .length = length };

	return raw_ioctl(r->fd, PRAWN_IOC_UNPIN, &p);
}

int raw_export(struct raw *r, void *address, uint64_t length, const char *name,
	       uint32_t flags, uint32_t *id)
{
	struct prawn_export e = { .address = (uintptr_t)address,
				  .length = length,
				  .cookie = (uintptr_t)address,
				  .node_mask = ~0ull,
				  .flags = flags };
	int error;

	strncpy(e.name, name, sizeof(e.name) - 1);
	error = raw_ioctl(r->fd, PRAWN_IOC_EXPORT, &e);
	*id = e.export_id;
	return error;
}

int raw_unexport(struct raw *r, uint32_t id)
{
	struct prawn_unexport u = { .export_id = id };

	return raw_ioctl(r->fd, PRAWN_IOC_UNEXPORT, &u);
}

int raw_import(struct raw *r, unsigned node, const char *name,
	       unsigned timeout_ms, uint32_t *id, uint64_t *length)
{
	struct prawn_import i = { .node = node, .timeout_ms = timeout_ms };
	int error;

	strncpy(i.name, name, sizeof(i.name) - 1);
	error = raw_ioctl(r->fd, PRAWN_IOC_IMPORT, &i);
	*id = i.import_id;
	if (length)
		*length = i.length;
	return error;
}

int raw_unimport(struct raw *r, uint32_t id)
{
	struct prawn_unimport u = { .import_id = id };

	return raw_ioctl(r->fd, PRAWN_IOC_UNIMPORT, &u);
}

uint64_t raw_pinned(struct raw *r)
{
	struct prawn_query q;

	return raw_ioctl(r->fd, PRAWN_IOC_QUERY, &q) ? ~0ull : q.pinned;
}

bool raw_counter(int fd, const char *name, uint64_t *value)
{
	struct prawn_counter c;

	for (uint32_t i = 0;; i++) {
		memset(&c, 0, sizeof(c));
		c.index = i;
		if (raw_ioctl(fd, PRAWN_IOC_COUNTER, &c))
			return false;
		if (strncmp(c.name, name, sizeof(c.name)) == 0) {
			*value = c.value;
			return true;
		}
	}
}

bool raw_room(const struct raw *r)
{
	return r->producer - r->consumed < r->size;
}

void raw_put(struct raw *r, const struct prawn_command *c)
{
	r->command[r->producer & (r->size - 1)] = *c;
	r->producer++;
}

void raw_ring(struct raw *r)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
	r->doorbell[PRAWN_DOORBELL_DOORBELL / 8] =
		(uint64_t)r->consumed << 32 | r->producer;
	r->rung = r->producer;
}

int raw_take(struct raw *r, struct prawn_completion *out, unsigned timeout_ms)
{
	const struct prawn_completion *e =
		&r->completion[r->consumed & (r->size - 1)];
	uint64_t end = 0;

	for (unsigned spins = 0;; spins++) {
		struct prawn_wait w = { .mask = PRAWN_WAIT_COMPLETION,
					.completion_seen = r->consumed,
					.timeout_ns = 100000000 };
		int error;

		if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) ==
		    r->consumed + 1) {
			*out = *e;
			r->consumed++;
			return 1;
		}
		if (!timeout_ms)
			return 0;
		if (spins < 1000)
			continue;
		if (!end)
			end = now_ms() + timeout_ms;
		else if (now_ms() >= end)
			return 0;
		error = raw_ioctl(r->fd, PRAWN_IOC_WAIT, &w);
		if (error && error != -ETIMEDOUT && error != -EINTR)
			return error;
	}
}

struct prawn_completion raw_do(struct raw *r, const struct prawn_command *c)
{
	struct prawn_completion done;
	int got;

	memset(&done, 0, sizeof(done));
	raw_put(r, c);
	raw_ring(r);
	got = raw_take(r, &done, PATIENCE_MS);
	if (got != 1)
		tap_bail("no completion of command %u: %s", r->consumed,
			 got ? strerror(-got) : "time-out");
	if (done.cookie != c->cookie)
		FAIL("completion of another command");
	return done;
}

struct prawn_command raw_send(uint32_t import_id, uint64_t offset,
			      const void *source, uint32_t length)
{
	static uint64_t cookie;

	return (struct prawn_command){ .opcode = PRAWN_OPCODE_SEND,
				       .length = length,
				       .source = (uintptr_t)source,
				       .offset = offset,
				       .cookie = ++cookie,
				       .import_id = import_id };
}

unsigned raw_status(struct raw *r, const struct prawn_command *c)
{
	return raw_do(r, c).status;
}

uint32_t raw_state(const struct raw *r)
{
	const volatile uint32_t *page = (const volatile uint32_t *)r->doorbell;

	return page[PRAWN_DOORBELL_STATE / 4];
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void sleep_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* splitmix64 */
uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint64_t random_below(struct random *r, uint64_t limit)
{
	return random_next(r) % limit;
}

void random_fill(struct random *r, void *to, size_t size)
{
	unsigned char *p = to;

	for (size_t i = 0; i < size; i++)
		p[i] = (unsigned char)random_next(r);
}
