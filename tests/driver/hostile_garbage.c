// SPDX-License-Identifier: Apache-2.0
/*
 * Random commands: all 64 bytes, or a well-formed command with a few bytes
 * changed. Whatever they mean, each completes with a status that a command may
 * have, in order, and the context goes on.
 *
 * usage: hostile_garbage [COMMANDS [SEED]]
 */
#include <inttypes.h>
#include <string.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3002, COMMANDS = 100000, MANY = 32 };

static struct raw r;
static uint32_t import_id;
static unsigned char *pinned;
static unsigned long commands = COMMANDS;
static struct random seed = { 20240229 };
static unsigned long seen[MANY + 1];

static bool allowed(unsigned status)
{
	switch (status) {
	case PRAWN_STATUS_OK:
	case PRAWN_STATUS_BAD_OPCODE:
	case PRAWN_STATUS_BAD_FIELD:
	case PRAWN_STATUS_BAD_LENGTH:
	case PRAWN_STATUS_BAD_IMPORT:
	case PRAWN_STATUS_OUT_OF_RANGE:
	case PRAWN_STATUS_NOT_PINNED:
		return true;
	default:
		return false;
	}
}

static struct prawn_command garbage(struct random *random)
{
	struct prawn_command c =
		raw_send(import_id, random_below(random, SANDBOX_SIZE),
			 pinned + random_below(random, 2 * RAW_PAGE),
			 (uint32_t)random_below(random, RAW_PAGE));
	unsigned char *bytes = (unsigned char *)&c;
	unsigned changes = (unsigned)random_below(random, 8);

	if (changes == 7)
		random_fill(random, &c, sizeof(c));
	while (changes-- && changes < 6)
		bytes[random_below(random, sizeof(c))] =
			(unsigned char)random_next(random);
	return c;
}

/* `expected` repeats what was put. */
static bool take_one(struct random *expected, unsigned long number)
{
	struct prawn_completion done;
	struct prawn_command c = garbage(expected);
	int got = raw_take(&r, &done, 60000);

	if (!EXPECT(got == 1, "command %lu was not completed: %s", number,
		    got ? strerror(-got) : "time-out"))
		return false;
	seen[done.status < MANY ? done.status : MANY]++;
	return EXPECT(allowed(done.status), "command %lu: status %u", number,
		      done.status) &
	       EXPECT(done.cookie == number, "command %lu: out of order",
		      number) &
	       EXPECT(done.bytes <= c.length, "command %lu: %u bytes of %u",
		      number, done.bytes, c.length);
}

static void all_of_it(void)
{
	struct random put = seed, expected = seed;
	unsigned long issued = 0, done = 0;

	victim_mark();
	while (done < commands) {
		for (; issued < commands && raw_room(&r); issued++) {
			struct prawn_command c = garbage(&put);

			c.cookie =
				issued; /* the one field that nobody looks at */
			raw_put(&r, &c);
		}
		raw_ring(&r);
		do {
			if (!take_one(&expected, done++))
				return;
		} while (done < issued && r.rung - r.consumed > r.size / 2);
	}
	victim_expect_progress();
	for (unsigned i = 0; i <= MANY; i++)
		if (seen[i])
			tap_note("  status %2u: %lu", i, seen[i]);
	/* A generator that hits one kind only would prove nothing. */
	for (unsigned i = 0; i <= PRAWN_STATUS_NOT_PINNED; i++)
		EXPECT(commands < 10000 || seen[i], "status %u never came up",
		       i);
}

static void afterwards(void)
{
	struct prawn_command c = raw_send(import_id, 0, pinned, 4096);
	struct prawn_completion done = raw_do(&r, &c);

	EXPECT_EQ(done.status, PRAWN_STATUS_OK);
	EXPECT_EQ(done.bytes, 4096);
	EXPECT_EQ(raw_state(&r), PRAWN_STATE_ENABLED_MASK);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		commands = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed.state = strtoull(argv[2], NULL, 0);
	become(UID, UID);
	raw_start(&r, 10);
	pinned = pages(3 * RAW_PAGE);
	if (raw_pin(&r, pinned, 2 * RAW_PAGE))
		tap_bail("cannot pin");
	if (raw_import(&r, PEER_NODE, NAME_SANDBOX, 30000, &import_id, NULL))
		tap_bail("cannot import %s", NAME_SANDBOX);
	tap_note("%lu commands, seed %" PRIu64, commands, seed.state);
	tap_run("random commands", all_of_it);
	tap_run("the context still serves", afterwards);
	raw_close(&r);
	return tap_end();
}
