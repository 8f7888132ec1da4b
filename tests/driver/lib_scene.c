// SPDX-License-Identifier: Apache-2.0
#include "lib_scene.h"

#include <string.h>

enum { PATIENCE_MS = 30000 };

bool lib_expect_ok(const char *file, int line, int error)
{
	return error >= 0 ||
	       tap_fail(file, line, "%s (%d)", vmmc_strerror(error), error);
}

bool lib_expect_error(const char *file, int line, const char *text, int got,
		      int want)
{
	return got == want ||
	       tap_fail(file, line, "%s is %d (%s), not %d (%s)", text, got,
			vmmc_strerror(got), want, vmmc_strerror(want));
}

vmmc_t *lib_open(void)
{
	vmmc_t *v = NULL;
	int error = vmmc_open(NULL, 0, &v);

	if (error)
		tap_bail("vmmc_open: %s", vmmc_strerror(error));
	return v;
}

static bool await(struct checked *c, struct vmmc_notification *n)
{
	int got = vmmc_wait(c->v, n, PATIENCE_MS);

	return EXPECT(got == 1, "no notification: %s",
		      got ? vmmc_strerror(got) : "time-out") &&
	       EXPECT_EQ(n->type, VMMC_MESSAGE);
}

bool checked_remote(struct checked *c, vmmc_t *v)
{
	struct vmmc_notification n;

	memset(c, 0, sizeof(*c));
	c->v = v;
	c->size = CHECK_SIZE;
	return EXPECT(guarded_make(&c->verdict, PAGE, 31, NULL), "no memory") &&
	       EXPECT_OK(vmmc_export(v, c->verdict.buffer, PAGE, NAME_VERDICT,
				     VMMC_EXPORT_NOTIFY, c,
				     &c->verdict_export)) &&
	       EXPECT_OK(vmmc_import(v, PEER_NODE, NAME_CHECK, PATIENCE_MS, c,
				     &c->to)) &&
	       EXPECT_EQ(vmmc_import_length(c->to), CHECK_SIZE + PAGE) &&
	       EXPECT_OK(vmmc_send(c->to, 0, c, 0, VMMC_SEND_NOTIFY,
				   CHECK_HELLO)) &&
	       await(c, &n) && EXPECT_EQ(n.immediate, CHECK_HELLO);
}

bool checked_local(struct checked *c, vmmc_t *v, const char *name, size_t size)
{
	struct vmmc_info info;

	memset(c, 0, sizeof(*c));
	c->v = v;
	c->size = size;
	if (!EXPECT(guarded_make(&c->inbox, size, 32, NULL), "no memory"))
		return false;
	memset(c->inbox.buffer, CHECK_FILL, size);
	return EXPECT_OK(vmmc_query(v, &info)) &&
	       EXPECT_OK(vmmc_export(v, c->inbox.buffer, size, name,
				     VMMC_EXPORT_NOTIFY, c,
				     &c->inbox_export)) &&
	       EXPECT_OK(
		       vmmc_import(v, info.node, name, PATIENCE_MS, c, &c->to));
}

void checked_close(struct checked *c)
{
	if (c->to)
		EXPECT_OK(vmmc_unimport(c->to));
	if (c->verdict_export)
		EXPECT_OK(vmmc_unexport(c->verdict_export));
	if (c->inbox_export)
		EXPECT_OK(vmmc_unexport(c->inbox_export));
	if (c->verdict.buffer && guarded_intact(&c->verdict, "verdict"))
		guarded_free(&c->verdict);
	if (c->inbox.buffer && guarded_intact(&c->inbox, "inbox"))
		guarded_free(&c->inbox);
}

static bool verify_local(struct checked *c, const struct vmmc_notification *n,
			 uint64_t offset, size_t length, uint32_t seed)
{
	unsigned char *inbox = c->inbox.buffer;
	size_t begin = offset < PAGE ? 0 : offset - PAGE;
	size_t end = offset + length;
	size_t after = c->size - end < PAGE ? c->size - end : PAGE;
	long wrong = pattern_check(inbox + offset, length, seed);
	bool good =
		EXPECT(wrong < 0, "%zu bytes at %llu: wrong at %ld", length,
		       (unsigned long long)offset, wrong) &
		EXPECT(first_other(inbox + begin, offset - begin, CHECK_FILL) <
				       0 &&
			       first_other(inbox + end, after, CHECK_FILL) < 0,
		       "%zu bytes at %llu: something beside them changed",
		       length, (unsigned long long)offset) &
		EXPECT_EQ(n->immediate, seed) & EXPECT_EQ(n->offset, offset) &
		EXPECT_EQ(n->length, length) & EXPECT_EQ(n->count, 1) &
		EXPECT(n->object == c, "object");

	memset(inbox + begin, CHECK_FILL, end + after - begin);
	return good;
}

bool checked_verify(struct checked *c, uint64_t offset, size_t length,
		    uint32_t seed)
{
	struct vmmc_notification n;
	struct verdict verdict;

	if (!await(c, &n))
		return false;
	if (c->inbox_export)
		return verify_local(c, &n, offset, length, seed);
	memcpy(&verdict, c->verdict.buffer, sizeof(verdict));
	return EXPECT(n.immediate == verdict.seed && verdict.seed == seed &&
			      verdict.offset == offset &&
			      verdict.length == length,
		      "verdict on message %u, %llu bytes at %llu; sent message "
		      "%u, %zu bytes at %llu",
		      verdict.seed, (unsigned long long)verdict.length,
		      (unsigned long long)verdict.offset, seed, length,
		      (unsigned long long)offset) &&
	       EXPECT(verdict.ok, "%zu bytes at %llu arrived wrong", length,
		      (unsigned long long)offset);
}

bool checked_send(struct checked *c, uint64_t offset, void *source,
		  size_t length, uint32_t seed)
{
	int error;

	pattern_fill(source, length, seed);
	error = vmmc_send(c->to, offset, source, length, VMMC_SEND_NOTIFY,
			  seed);
	return EXPECT(!error, "%zu bytes at %llu: %s", length,
		      (unsigned long long)offset, vmmc_strerror(error)) &&
	       checked_verify(c, offset, length, seed);
}

bool checked_pieces(struct checked *c, uint64_t offset, void *source,
		    size_t length, uint32_t seed)
{
	struct order order = { offset, length, seed };
	int error;

	pattern_fill(source, length, seed);
	error = vmmc_send(c->to, offset, source, length, 0, 0);
	if (!EXPECT(!error, "%zu bytes: %s", length, vmmc_strerror(error)))
		return false;
	error = vmmc_send(c->to, CHECK_SIZE, &order, sizeof(order),
			  VMMC_SEND_NOTIFY, CHECK_ORDER);
	return EXPECT(!error, "order: %s", vmmc_strerror(error)) &&
	       checked_verify(c, offset, length, seed);
}
