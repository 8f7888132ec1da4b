// SPDX-License-Identifier: Apache-2.0
/* Requests: from vmmc_isend() to their completion. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "vmmc_internal.h"

/* Repeats of one command because its pages keep moving, before giving up. */
#define TRIES_MAX 64

/* Polls before a waiting call sleeps: about what an interrupt costs. */
#define SPIN_NS 100000u

int requests_init(vmmc_t *v)
{
	size_t n = (size_t)v->mask + 1;

	v->request = calloc(n, sizeof(*v->request));
	v->free_request = calloc(n, sizeof(*v->free_request));
	v->piece = calloc(n, sizeof(*v->piece));
	v->repeat = calloc(n, sizeof(*v->repeat));
	if (!v->request || !v->free_request || !v->piece || !v->repeat)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		v->request[i].generation = 1;
		v->free_request[i] = (uint32_t)(n - 1 - i);
	}
	v->free_requests = (uint32_t)n;
	return 0;
}

void requests_free(vmmc_t *v)
{
	free(v->request);
	free(v->free_request);
	free(v->piece);
	free(v->repeat);
}

static bool ring_full(const vmmc_t *v)
{
	return v->producer - v->completed > v->mask;
}

static void set_error(struct request *r, int error)
{
	if (!r->result.error)
		r->result.error = error;
	r->unposted = false;
	r->left = 0;
}

/* Put a piece, whose pages are held, into the ring; the ring has room. */
static void issue(vmmc_t *v, const struct piece *p)
{
	uint32_t slot = v->producer & v->mask;
	struct request *r = &v->request[p->request];

	v->piece[slot] = *p;
	v->card.command[slot] = (struct prawn_command){
		.opcode = PRAWN_OPCODE_SEND,
		.flags = p->flags & VMMC_SEND_NOTIFY ? PRAWN_COMMAND_FLAG_NOTIFY
						     : 0,
		.length = p->length,
		.source = p->source,
		.offset = p->offset,
		.cookie = v->producer,
		.import_id = r->import_id,
		.immediate = r->immediate,
		.completions_seen = v->completed,
		.notifications_seen = v->noticed,
	};
	v->producer++;
}

static void ring_doorbell(vmmc_t *v)
{
	doorbell_write(v, PRAWN_DOORBELL_DOORBELL,
		       (uint64_t)v->completed << 32 | v->producer);
}

/* Post as much of the request's rest as the ring and the pin limit allow. */
static void post(vmmc_t *v, uint32_t slot)
{
	struct request *r = &v->request[slot];
	bool any = false;

	while (r->unposted && !ring_full(v)) {
		uint64_t held = 0;
		int error = pins_get(&v->pins, r->source, r->left, &held);
		struct piece p = {
			.request = slot,
			.source = r->source,
			.offset = r->offset,
		};

		if (error) {
			/* Pages that sends under way hold will come free. */
			if (error == -ENOMEM && v->producer != v->completed)
				break;
			set_error(r, error);
			break;
		}
		p.length = (uint32_t)held;
		r->source += held;
		r->offset += held;
		r->left -= held;
		if (!r->left) {
			r->unposted = false;
			p.flags = r->flags;
		}
		r->pieces++;
		issue(v, &p);
		any = true;
	}
	if (any)
		ring_doorbell(v);
}

/* All of it, or the reason why not. */
static int hold_all(struct pin_table *t, uint64_t va, uint64_t length)
{
	for (int tries = 0; tries < 2; tries++) {
		uint64_t held = 0, rest = 0;
		int error = pins_get(t, va, length, &held);

		if (error || held == length)
			return error;
		pins_put(t, va, held);
		error = pins_get(t, va + held, length - held, &rest);
		if (error)
			return error;
		pins_put(t, va + held, rest);
	}
	return -ENOMEM;
}

/*
 * An import goes. Its number will name another one some day, so what has not
 * reached the ring by now must not: it ends as the card would end it.
 */
void requests_let_go(vmmc_t *v, const vmmc_import_t *i)
{
	for (uint32_t slot = 0; slot <= v->mask; slot++) {
		struct request *r = &v->request[slot];

		if (!r->used || r->import != i || (!r->unposted && !r->pieces))
			continue;
		r->let_go = true;
		if (r->unposted)
			set_error(r, VMMC_CARD_ERROR(PRAWN_STATUS_BAD_IMPORT));
	}
	if (v->is_posting)
		v->is_posting = v->request[v->posting].unposted;
}

/* The card found a page that was pinned once: ask the kernel and repeat. */
static void repeat(vmmc_t *v)
{
	bool any = false;

	while (v->repeat_head != v->repeat_tail && !ring_full(v)) {
		struct piece *p = &v->repeat[v->repeat_head & v->mask];
		struct request *r = &v->request[p->request];
		int error = r->let_go
				    ? VMMC_CARD_ERROR(PRAWN_STATUS_BAD_IMPORT)
				    : hold_all(&v->pins, p->source, p->length);

		if (error == -ENOMEM && v->producer != v->completed)
			break; /* when others have finished */
		v->repeat_head++;
		if (error) {
			r->pieces--;
			set_error(r, error);
			continue;
		}
		issue(v, p);
		any = true;
	}
	if (any)
		ring_doorbell(v);
}

static int error_of(const struct prawn_completion *e)
{
	if (e->status == PRAWN_STATUS_IMPORT_ERROR && e->detail)
		return VMMC_CARD_ERROR(e->detail);
	return e->status ? VMMC_CARD_ERROR(e->status) : 0;
}

static void completed(vmmc_t *v, const struct prawn_completion *e,
		      struct piece p)
{
	struct request *r = &v->request[p.request];

	pins_put(&v->pins, p.source, p.length);
	if (!r->accepted) {
		r->accepted = true;
		r->result.accepted_ps = e->accepted;
	}
	r->result.finished_ps = e->finished;
	if (e->status == PRAWN_STATUS_NOT_PINNED && p.tries++ < TRIES_MAX) {
		uint64_t page = e->fault & ~(PIN_PAGE - 1);

		pins_forget(&v->pins, page, PIN_PAGE);
		v->repeat[v->repeat_tail++ & v->mask] = p;
		return;
	}
	r->pieces--;
	r->result.bytes += e->bytes;
	if (e->status)
		set_error(r, error_of(e));
}

void progress(vmmc_t *v)
{
	for (;;) {
		uint32_t slot = v->completed & v->mask;
		const struct prawn_completion *e = &v->card.completion[slot];
		struct prawn_completion copy;
		struct piece p;

		if (v->completed == v->producer ||
		    seq_read_before_entry(&e->seq) != v->completed + 1)
			break;
		copy = *e;
		p = v->piece[slot];
		v->completed++;
		completed(v, &copy, p);
	}
	if (v->repeat_head != v->repeat_tail)
		repeat(v);
	if (v->is_posting) {
		post(v, v->posting);
		v->is_posting = v->request[v->posting].unposted;
	}
}

VMMC_API int vmmc_isend(vmmc_import_t *i, uint64_t offset, const void *source,
			size_t length, unsigned int flags, uint32_t immediate,
			vmmc_request_t *request)
{
	vmmc_t *v = i->v;
	struct request *r;
	uint32_t slot;
	int error = vmmc_check_owner(v);

	if (error)
		return error;
	if (flags & ~(unsigned int)VMMC_SEND_NOTIFY ||
	    length > VMMC_MESSAGE_MAX)
		return -EINVAL;
	if (length > i->length || offset > i->length - length)
		return VMMC_CARD_ERROR(PRAWN_STATUS_OUT_OF_RANGE);
	if ((uintptr_t)source > UINTPTR_MAX - length)
		return -EFAULT;
	pthread_mutex_lock(&v->lock);
	progress(v);
	if (v->is_posting || !v->free_requests || ring_full(v)) {
		pthread_mutex_unlock(&v->lock);
		return -EAGAIN;
	}
	slot = v->free_request[--v->free_requests];
	r = &v->request[slot];
	*r = (struct request){
		.generation = r->generation,
		.used = true,
		.import_id = i->id,
		.import = i,
		.source = (uintptr_t)source,
		.offset = offset,
		.left = length,
		.unposted = true,
		.flags = flags,
		.immediate = immediate,
	};
	post(v, slot);
	v->is_posting = r->unposted;
	v->posting = slot;
	*request = (uint64_t)r->generation << 32 | slot;
	pthread_mutex_unlock(&v->lock);
	return 0;
}

static int test_locked(vmmc_t *v, vmmc_request_t request,
		       struct vmmc_completion *c)
{
	uint32_t slot = (uint32_t)request;
	struct request *r = &v->request[slot & v->mask];

	if (slot > v->mask || !r->used || r->generation != request >> 32)
		return -EINVAL;
	progress(v);
	if (r->unposted || r->pieces)
		return 0;
	if (c)
		*c = r->result;
	r->used = false;
	if (!++r->generation)
		r->generation = 1;
	v->free_request[v->free_requests++] = slot;
	return 1;
}

VMMC_API int vmmc_test(vmmc_t *v, vmmc_request_t request,
		       struct vmmc_completion *c)
{
	int got = vmmc_check_owner(v);

	if (got)
		return got;
	pthread_mutex_lock(&v->lock);
	got = test_locked(v, request, c);
	pthread_mutex_unlock(&v->lock);
	return got;
}

VMMC_API int vmmc_complete(vmmc_t *v, vmmc_request_t request,
			   struct vmmc_completion *c, int timeout_ms)
{
	uint64_t start = clock_ns();
	uint64_t limit =
		timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000000u;
	int got = vmmc_check_owner(v);

	while (!got) {
		uint32_t seen;
		uint64_t spent;
		int error;

		pthread_mutex_lock(&v->lock);
		got = test_locked(v, request, c);
		seen = v->completed;
		pthread_mutex_unlock(&v->lock);
		if (got)
			break;
		spent = clock_ns() - start;
		if (spent >= limit)
			break;
		if (spent < SPIN_NS) {
			cpu_pause();
			continue;
		}
		error = card_wait(
			&v->card, 1, seen, 0, 0,
			limit == UINT64_MAX ? -1 : (int64_t)(limit - spent));
		if (error && error != -ETIMEDOUT)
			return error;
	}
	return got;
}

/*
 * There was no room for a request: wait until there may be. -EAGAIN if that
 * would be for ever: every place is taken by a request that is over, and none
 * belongs to a vmmc_send(), which is about to give it back.
 */
static int wait_for_room(vmmc_t *v, uint64_t start)
{
	bool hopeless, under_way;
	uint32_t seen;
	int error;

	pthread_mutex_lock(&v->lock);
	progress(v);
	seen = v->completed;
	under_way = v->producer != v->completed;
	hopeless = !under_way && !v->is_posting && !v->free_requests &&
		   v->stuck == v->senders;
	pthread_mutex_unlock(&v->lock);
	if (hopeless)
		return -EAGAIN;
	if (!under_way) { /* another thread is about to make room */
		sched_yield();
		return 0;
	}
	if (clock_ns() - start < SPIN_NS) {
		cpu_pause();
		return 0;
	}
	error = card_wait(&v->card, 1, seen, 0, 0, -1);
	return error == -EINTR ? 0 : error;
}

static int isend_with_room(vmmc_import_t *i, uint64_t offset,
			   const void *source, size_t length,
			   unsigned int flags, uint32_t immediate,
			   vmmc_request_t *request)
{
	vmmc_t *v = i->v;
	uint64_t start = 0;
	int error;

	while ((error = vmmc_isend(i, offset, source, length, flags, immediate,
				   request)) == -EAGAIN) {
		if (!start) {
			start = clock_ns();
			__atomic_add_fetch(&v->stuck, 1, __ATOMIC_SEQ_CST);
		}
		error = wait_for_room(v, start);
		if (error)
			break;
	}
	if (start)
		__atomic_sub_fetch(&v->stuck, 1, __ATOMIC_SEQ_CST);
	return error;
}

VMMC_API int vmmc_send(vmmc_import_t *i, uint64_t offset, const void *source,
		       size_t length, unsigned int flags, uint32_t immediate)
{
	struct vmmc_completion c = { 0 };
	vmmc_t *v = i->v;
	vmmc_request_t request;
	int error;

	__atomic_add_fetch(&v->senders, 1, __ATOMIC_SEQ_CST);
	error = isend_with_room(i, offset, source, length, flags, immediate,
				&request);
	while (!error) {
		error = vmmc_complete(v, request, &c, -1);
		if (error == -EINTR)
			error = 0;
	}
	__atomic_sub_fetch(&v->senders, 1, __ATOMIC_SEQ_CST);
	return error < 0 ? error : c.error;
}
