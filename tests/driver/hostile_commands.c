// SPDX-License-Identifier: Apache-2.0
/*
 * Commands that ask for what the process has no right to: sources that are not
 * its own or not pinned, lengths that wrap, fields that make no sense,
 * destinations that it has not imported. Each gets its documented status, and
 * the next command is served as usual.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3001 };

static struct raw r;
static uint32_t import_id;
static uint64_t import_length;
static unsigned char *pinned;	/* two pages that are */
static unsigned char *unpinned; /* two pages that are not */

/* The context works as before. */
static void still_serves(void)
{
	struct prawn_command c = raw_send(import_id, 0, pinned, 64);
	struct prawn_completion done = raw_do(&r, &c);

	EXPECT_EQ(done.status, PRAWN_STATUS_OK);
	EXPECT_EQ(done.bytes, 64);
}

static void expect_status(const char *what, struct prawn_command c,
			  unsigned want)
{
	unsigned got = raw_status(&r, &c);

	EXPECT(got == want, "%s: status %u, not %u", what, got, want);
}

static void expect_not_pinned(const char *what, const void *source,
			      uint32_t length, uint64_t fault, uint32_t bytes)
{
	struct prawn_command c = raw_send(import_id, 0, source, length);
	struct prawn_completion done = raw_do(&r, &c);

	EXPECT(done.status == PRAWN_STATUS_NOT_PINNED,
	       "%s: status %u, not NOT_PINNED", what, done.status);
	EXPECT((done.fault & ~(uint64_t)(RAW_PAGE - 1)) == fault,
	       "%s: fault at %#llx, not %#llx", what,
	       (unsigned long long)done.fault, (unsigned long long)fault);
	EXPECT(done.bytes <= bytes,
	       "%s: %u bytes went out, at most %u were allowed", what,
	       done.bytes, bytes);
}

static void foreign_sources(void)
{
	unsigned char *p = pages(4 * RAW_PAGE);
	void *hole;

	expect_not_pinned("never pinned", unpinned, 100, (uintptr_t)unpinned,
			  0);
	expect_not_pinned("address 0", NULL, 8, 0, 0);
	expect_not_pinned("the victim's pages", VICTIM_SOURCE, 4096,
			  (uintptr_t)VICTIM_SOURCE, 0);
	expect_not_pinned("last user page", (void *)0x7ffffffff000, 4096,
			  0x7ffffffff000, 0);
	expect_not_pinned("upper half", (void *)0x800000000000, 64,
			  0x800000000000, 0);
	expect_not_pinned("own command ring", r.command, 64,
			  (uintptr_t)r.command, 0);
	expect_not_pinned("own doorbell page", (void *)(uintptr_t)r.doorbell, 8,
			  (uintptr_t)r.doorbell, 0);

	EXPECT_EQ(raw_pin(&r, p, 2 * RAW_PAGE), 0);
	expect_not_pinned("third page not pinned", p + 100, 2 * RAW_PAGE,
			  (uintptr_t)p + 2 * RAW_PAGE, 2 * RAW_PAGE - 100);
	EXPECT_EQ(raw_unpin(&r, p, RAW_PAGE), 0);
	expect_not_pinned("unpinned again", p, 64, (uintptr_t)p, 0);
	expect_status("the other page stays",
		      raw_send(import_id, 0, p + RAW_PAGE, 64),
		      PRAWN_STATUS_OK);

	EXPECT_EQ(raw_pin(&r, p, 4 * RAW_PAGE), 0);
	munmap(p + RAW_PAGE, RAW_PAGE);
	expect_not_pinned("unmapped", p + RAW_PAGE, 64, (uintptr_t)p + RAW_PAGE,
			  0);
	hole = mmap(p + RAW_PAGE, RAW_PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	EXPECT(hole == p + RAW_PAGE, "mmap failed");
	memset(hole, 1, RAW_PAGE);
	expect_not_pinned("mapped anew", p + RAW_PAGE, 64,
			  (uintptr_t)p + RAW_PAGE, 0);
	EXPECT_EQ(madvise(p + 2 * RAW_PAGE, RAW_PAGE, MADV_DONTNEED), 0);
	expect_not_pinned("thrown away", p + 2 * RAW_PAGE, 64,
			  (uintptr_t)p + 2 * RAW_PAGE, 0);
	munmap(p, 4 * RAW_PAGE);
	still_serves();
}

static void impossible_pins(void)
{
	void *none = mmap(NULL, RAW_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT_EQ(raw_pin(&r, NULL, RAW_PAGE), -EFAULT);
	EXPECT_EQ(raw_pin(&r, none, RAW_PAGE), -EFAULT);
	EXPECT_EQ(raw_pin(&r, VICTIM_SOURCE, RAW_PAGE), -EFAULT);
	EXPECT_EQ(raw_pin(&r, r.command, RAW_PAGE), -EFAULT);
	EXPECT_EQ(raw_pin(&r, (void *)(uintptr_t)r.doorbell, RAW_PAGE),
		  -EFAULT);
	EXPECT_EQ(raw_pin(&r, (void *)0xffff888000000000, RAW_PAGE), -EINVAL);
	EXPECT_EQ(raw_pin(&r, pinned, ~0ull), -EINVAL);
	EXPECT_EQ(raw_pin(&r, pinned, -(uint64_t)(uintptr_t)pinned), -EINVAL);
	EXPECT_EQ(raw_pin(&r, pinned, 0), -EINVAL);
	munmap(none, RAW_PAGE);
	still_serves();
}

static void lengths(void)
{
	const uint64_t top = 1ull << PRAWN_VA_BITS;
	struct prawn_command c = raw_send(import_id, 0, pinned, 1);

	c.length = PRAWN_MAX_MESSAGE + 1;
	expect_status("longer than MAX_MESSAGE", c, PRAWN_STATUS_BAD_LENGTH);
	c.length = ~0u;
	expect_status("all ones", c, PRAWN_STATUS_BAD_LENGTH);
	c = raw_send(import_id, 0, (void *)(uintptr_t)(top - 8), 9);
	expect_status("beyond the address space", c, PRAWN_STATUS_BAD_LENGTH);
	c = raw_send(import_id, 0, (void *)(uintptr_t)(top + 4096), 1);
	expect_status("not canonical", c, PRAWN_STATUS_BAD_LENGTH);
	c = raw_send(import_id, 0, (void *)0xffff888000001000, 64);
	expect_status("the kernel's memory", c, PRAWN_STATUS_BAD_LENGTH);
	c = raw_send(import_id, 0, (void *)~(uintptr_t)0, 2);
	expect_status("source wraps", c, PRAWN_STATUS_BAD_LENGTH);
	c = raw_send(import_id, ~0ull, pinned, 2);
	expect_status("offset wraps", c, PRAWN_STATUS_BAD_LENGTH);

	c = raw_send(import_id, import_length - 8, pinned, 8);
	expect_status("the last bytes", c, PRAWN_STATUS_OK);
	c = raw_send(import_id, import_length, pinned, 0);
	expect_status("nothing, at the end", c, PRAWN_STATUS_OK);
	c = raw_send(import_id, import_length - 8, pinned, 9);
	expect_status("one byte beyond", c, PRAWN_STATUS_OUT_OF_RANGE);
	c = raw_send(import_id, import_length, pinned, 1);
	expect_status("just beyond", c, PRAWN_STATUS_OUT_OF_RANGE);
	c = raw_send(import_id, import_length + 1, pinned, 0);
	expect_status("nothing, beyond", c, PRAWN_STATUS_OUT_OF_RANGE);
	c = raw_send(import_id, 1ull << 40, pinned, 8);
	expect_status("far beyond", c, PRAWN_STATUS_OUT_OF_RANGE);
	c = raw_send(import_id, 0, pinned, PRAWN_MAX_MESSAGE);
	expect_status("longer than the export", c, PRAWN_STATUS_OUT_OF_RANGE);
	still_serves();
}

static void fields(void)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		struct prawn_command c = raw_send(import_id, 0, pinned, 64);

		c.opcode = (uint8_t)opcode;
		expect_status("opcode", c,
			      opcode <= PRAWN_OPCODE_FENCE
				      ? PRAWN_STATUS_OK
				      : PRAWN_STATUS_BAD_OPCODE);
	}
	for (unsigned flags = 2; flags < 256; flags++) {
		struct prawn_command c = raw_send(import_id, 0, pinned, 64);

		c.flags = (uint8_t)flags;
		if (flags & ~PRAWN_COMMAND_FLAGS)
			expect_status("flags", c, PRAWN_STATUS_BAD_FIELD);
	}
	for (unsigned bit = 0; bit < 16 + 32 + 3 * 32; bit++) {
		struct prawn_command c = raw_send(import_id, 0, pinned, 64);

		if (bit < 16)
			c.rsvd0 = (uint16_t)(1u << bit);
		else if (bit < 48)
			c.utlb_index = 1u << (bit - 16);
		else
			c.rsvd1[(bit - 48) / 32] = 1u << bit % 32;
		expect_status("reserved bit", c, PRAWN_STATUS_BAD_FIELD);
	}
	still_serves();
}

/* Every entry of the outgoing page table but our own, the victim's included. */
static void foreign_imports(void)
{
	struct prawn_command c = raw_send(import_id, 0, pinned, 64);
	struct prawn_completion done;
	uint32_t next = 0, answered = 0, wrong = 0;

	while (answered < r.query.opt_entries) {
		while (next < r.query.opt_entries && raw_room(&r)) {
			c.import_id = next;
			c.cookie = next++;
			raw_put(&r, &c);
		}
		raw_ring(&r);
		if (!EXPECT(raw_take(&r, &done, 30000) == 1, "no completion"))
			return;
		if (done.cookie != answered ||
		    done.status != (answered == import_id
					    ? PRAWN_STATUS_OK
					    : PRAWN_STATUS_BAD_IMPORT))
			wrong++;
		answered++;
	}
	EXPECT(!wrong, "%u of %u entries gave another status than BAD_IMPORT",
	       wrong, answered);
	c.import_id = r.query.opt_entries;
	expect_status("first entry beyond the table", c,
		      PRAWN_STATUS_BAD_IMPORT);
	for (unsigned bit = 0; bit < 32; bit++) {
		c.import_id = import_id ^ 1u << bit;
		expect_status("import_id, one bit off", c,
			      PRAWN_STATUS_BAD_IMPORT);
	}
	still_serves();
}

/* What was imported once and is no more. */
static void former_import(void)
{
	uint32_t id;
	struct prawn_command c;

	if (!EXPECT_EQ(raw_import(&r, PEER_NODE, NAME_SANDBOX, 5000, &id, NULL),
		       0))
		return;
	c = raw_send(id, 0, pinned, 64);
	expect_status("imported", c, PRAWN_STATUS_OK);
	EXPECT_EQ(raw_unimport(&r, id), 0);
	expect_status("unimported", c, PRAWN_STATUS_BAD_IMPORT);
	EXPECT_EQ(raw_unimport(&r, id), -ENOENT);
	EXPECT_EQ(raw_unimport(&r, id + 1), -ENOENT);
	EXPECT_EQ(raw_unimport(&r, ~0u), -ENOENT);
	EXPECT_EQ(raw_unexport(&r, 0), -ENOENT);
	EXPECT_EQ(raw_unexport(&r, ~0u), -ENOENT);
	still_serves();
}

static void (*current)(void);

static void beside_the_victim(void)
{
	victim_mark();
	current();
	victim_expect_progress();
}

int main(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
	} cases[] = {
		{ "sources that are not pinned or not ours", foreign_sources },
		{ "memory that cannot be pinned", impossible_pins },
		{ "lengths and offsets that wrap or go beyond", lengths },
		{ "every opcode, flag and reserved bit", fields },
		{ "every destination that was not imported", foreign_imports },
		{ "a destination that was let go", former_import },
	};

	become(UID, UID);
	raw_start(&r, 8);
	pinned = pages(2 * RAW_PAGE);
	unpinned = pages(2 * RAW_PAGE);
	if (raw_pin(&r, pinned, 2 * RAW_PAGE))
		tap_bail("cannot pin");
	if (raw_import(&r, PEER_NODE, NAME_SANDBOX, 30000, &import_id,
		       &import_length))
		tap_bail("cannot import %s", NAME_SANDBOX);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		current = cases[i].body;
		tap_run(cases[i].name, beside_the_victim);
	}
	raw_close(&r);
	return tap_end();
}
