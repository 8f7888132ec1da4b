// SPDX-License-Identifier: Apache-2.0
#include "pins.h"

#include <errno.h>
#include <stdlib.h>

struct pin_chunk {
	struct pin_chunk *next;
	uint64_t number; /* va >> PIN_CHUNK_SHIFT */
	uint64_t pinned; /* a bit a page */
	uint64_t stamp;	 /* last use */
	uint32_t users;	 /* sends under way that touch it */
};

static size_t hash(const struct pin_table *t, uint64_t number)
{
	return (size_t)((number * 0x9e3779b97f4a7c15ull) >> 32) &
	       (t->buckets - 1);
}

int pins_init(struct pin_table *t, const struct pin_ops *ops)
{
	t->ops = *ops;
	t->buckets = 256;
	t->chunks = 0;
	t->clock = 0;
	t->bucket = calloc(t->buckets, sizeof(*t->bucket));
	return t->bucket ? 0 : -ENOMEM;
}

void pins_free(struct pin_table *t)
{
	for (size_t i = 0; i < t->buckets; i++) {
		struct pin_chunk *c = t->bucket[i];

		while (c) {
			struct pin_chunk *next = c->next;

			free(c);
			c = next;
		}
	}
	free(t->bucket);
	t->bucket = NULL;
	t->buckets = 0;
}

static struct pin_chunk *find(const struct pin_table *t, uint64_t number)
{
	struct pin_chunk *c = t->bucket[hash(t, number)];

	while (c && c->number != number)
		c = c->next;
	return c;
}

/* A table that cannot grow works on, only slower. */
static void grow(struct pin_table *t)
{
	struct pin_table bigger = *t;

	bigger.buckets = t->buckets * 2;
	bigger.bucket = calloc(bigger.buckets, sizeof(*bigger.bucket));
	if (!bigger.bucket)
		return;
	for (size_t i = 0; i < t->buckets; i++) {
		struct pin_chunk *c = t->bucket[i];

		while (c) {
			struct pin_chunk *next = c->next;
			size_t h = hash(&bigger, c->number);

			c->next = bigger.bucket[h];
			bigger.bucket[h] = c;
			c = next;
		}
	}
	free(t->bucket);
	*t = bigger;
}

static struct pin_chunk *find_or_add(struct pin_table *t, uint64_t number)
{
	struct pin_chunk *c = find(t, number);
	size_t h;

	if (c)
		return c;
	if (t->chunks >= t->buckets)
		grow(t);
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->number = number;
	h = hash(t, number);
	c->next = t->bucket[h];
	t->bucket[h] = c;
	t->chunks++;
	return c;
}

/* Bits of the pages of chunk @number that [va, end) touches; va < end. */
static uint64_t mask_of(uint64_t number, uint64_t va, uint64_t end)
{
	uint64_t base = number << PIN_CHUNK_SHIFT;
	unsigned int first = 0;
	unsigned int last = 63;

	if (va > base)
		first = (unsigned int)((va - base) >> PIN_PAGE_SHIFT);
	if (end < base + PIN_CHUNK)
		last = (unsigned int)((end - 1 - base) >> PIN_PAGE_SHIFT);
	return (~0ull >> (63 - last)) & (~0ull << first);
}

static int unpin_chunk(struct pin_table *t, struct pin_chunk *c, uint64_t mask)
{
	uint64_t todo = c->pinned & mask;
	int error = 0;

	while (todo) {
		unsigned int first = (unsigned int)__builtin_ctzll(todo);
		unsigned int n = 0;
		uint64_t va = (c->number << PIN_CHUNK_SHIFT) +
			      ((uint64_t)first << PIN_PAGE_SHIFT);
		int e;

		while (first + n < 64 && (todo >> (first + n) & 1)) {
			todo &= ~(1ull << (first + n));
			c->pinned &= ~(1ull << (first + n));
			n++;
		}
		e = t->ops.unpin(t->ops.arg, va, (uint64_t)n << PIN_PAGE_SHIFT);
		if (e && !error)
			error = e;
	}
	return error;
}

/* The least recently used chunk that nobody uses. */
bool pins_evict(struct pin_table *t)
{
	struct pin_chunk *oldest = NULL;

	for (size_t i = 0; i < t->buckets; i++) {
		for (struct pin_chunk *c = t->bucket[i]; c; c = c->next) {
			if (!c->pinned || c->users)
				continue;
			if (!oldest || c->stamp < oldest->stamp)
				oldest = c;
		}
	}
	if (!oldest)
		return false;
	unpin_chunk(t, oldest, ~0ull);
	return true;
}

/* Nothing else to give: what an earlier piece left in our own chunk. */
static bool evict_rest(struct pin_table *t, struct pin_chunk *c, uint64_t want)
{
	if (c->users > 1 || !(c->pinned & ~want))
		return false;
	unpin_chunk(t, c, ~want);
	return true;
}

static bool over_limit(int error)
{
	return error == -ENOMEM || error == -ENOSPC || error == -EAGAIN;
}

/* Pin the pages of @want in @c from the lowest up; what is got is marked. */
static int pin_chunk(struct pin_table *t, struct pin_chunk *c, uint64_t want)
{
	uint64_t todo = want & ~c->pinned;

	while (todo) {
		unsigned int first = (unsigned int)__builtin_ctzll(todo);
		unsigned int n = 0;
		uint64_t va = (c->number << PIN_CHUNK_SHIFT) +
			      ((uint64_t)first << PIN_PAGE_SHIFT);
		int e;

		while (first + n < 64 && (todo >> (first + n) & 1))
			n++;
		e = t->ops.pin(t->ops.arg, va, (uint64_t)n << PIN_PAGE_SHIFT);
		if (over_limit(e) && (pins_evict(t) || evict_rest(t, c, want)))
			continue;
		if (over_limit(e) && n > 1) { /* a part may still fit */
			n = 1;
			e = t->ops.pin(t->ops.arg, va, PIN_PAGE);
		}
		if (e)
			return e;
		for (unsigned int i = first; i < first + n; i++) {
			c->pinned |= 1ull << i;
			todo &= ~(1ull << i);
		}
	}
	return 0;
}

int pins_get(struct pin_table *t, uint64_t va, uint64_t length, uint64_t *held)
{
	uint64_t end = va + length;
	uint64_t at = va;
	int error = 0;

	while (at < end) {
		uint64_t number = at >> PIN_CHUNK_SHIFT;
		uint64_t stop = (number + 1) << PIN_CHUNK_SHIFT;
		struct pin_chunk *c = find_or_add(t, number);
		uint64_t want;

		if (stop > end)
			stop = end;
		if (!c) {
			error = -ENOMEM;
			break;
		}
		want = mask_of(number, at, stop);
		c->stamp = ++t->clock;
		c->users++; /* before pinning: pins_evict() must not take it */
		if ((c->pinned & want) != want)
			error = pin_chunk(t, c, want);
		if (error) {
			uint64_t got = c->pinned & want;
			uint64_t missing = want & ~got;
			uint64_t good = (number << PIN_CHUNK_SHIFT) +
					((uint64_t)__builtin_ctzll(missing)
					 << PIN_PAGE_SHIFT);

			if (good > at)
				at = good;
			else
				c->users--;
			break;
		}
		at = stop;
	}
	*held = at - va;
	return *held || !length ? 0 : error;
}

void pins_put(struct pin_table *t, uint64_t va, uint64_t length)
{
	uint64_t end = va + length;

	if (!length)
		return;
	for (uint64_t n = va >> PIN_CHUNK_SHIFT;
	     n <= (end - 1) >> PIN_CHUNK_SHIFT; n++) {
		struct pin_chunk *c = find(t, n);

		if (c && c->users)
			c->users--;
	}
}

void pins_forget(struct pin_table *t, uint64_t va, uint64_t length)
{
	uint64_t end = va + length;

	if (!length)
		return;
	for (uint64_t n = va >> PIN_CHUNK_SHIFT;
	     n <= (end - 1) >> PIN_CHUNK_SHIFT; n++) {
		struct pin_chunk *c = find(t, n);

		if (c)
			c->pinned &= ~mask_of(n, va, end);
	}
}

int pins_drop(struct pin_table *t, uint64_t va, uint64_t length)
{
	uint64_t end = va + length;
	int error = 0;

	if (!length)
		return 0;
	for (uint64_t n = va >> PIN_CHUNK_SHIFT;
	     n <= (end - 1) >> PIN_CHUNK_SHIFT; n++) {
		struct pin_chunk *c = find(t, n);

		if (c && c->users)
			return -EBUSY;
	}
	for (uint64_t n = va >> PIN_CHUNK_SHIFT;
	     n <= (end - 1) >> PIN_CHUNK_SHIFT; n++) {
		struct pin_chunk *c = find(t, n);
		int e = c ? unpin_chunk(t, c, mask_of(n, va, end)) : 0;

		if (e && !error)
			error = e;
	}
	return error;
}
