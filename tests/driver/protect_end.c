// SPDX-License-Identifier: Apache-2.0
/*
 * The last look: what the card's checker says. Then the peer is told to end.
 *
 * usage: protect_end check | quit
 */
#include <inttypes.h>
#include <string.h>

#include "hostile_raw.h"
#include "lib_scene.h"

static struct raw r;

static void checker(void)
{
	uint64_t failed = ~0ull, checked = 0;

	if (!EXPECT(r.query.features & PRAWN_FEATURES_CHECKER_MASK,
		    "the card has no checker: boot with --set checker=true"))
		return;
	EXPECT(raw_counter(r.fd, "grant_checker.failed", &failed) && !failed,
	       "%" PRIu64 " DMAs outside of the grants", failed);
	EXPECT(raw_counter(r.fd, "grant_checker.checked", &checked) && checked,
	       "the checker has seen nothing");
	tap_note("  %" PRIu64 " DMAs, all within the grants", checked);
}

/* What the driver asked for was right, whatever processes asked it for. */
static void admin(void)
{
	static const char *const counters[] = { "grant_checker.bad_requests",
						"admin_queue.refused",
						"admin_queue.errors" };

	for (unsigned i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
		uint64_t value = 0;

		EXPECT(raw_counter(r.fd, counters[i], &value), "no counter %s",
		       counters[i]);
		EXPECT(!value, "%s is %" PRIu64, counters[i], value);
	}
}

static void quit(void)
{
	vmmc_t *v = lib_open();
	vmmc_import_t *i;

	if (EXPECT_OK(vmmc_import(v, PEER_NODE, NAME_CHECK, 10000, NULL, &i)))
		EXPECT_OK(vmmc_send(i, 0, "", 0, VMMC_SEND_NOTIFY, CHECK_QUIT));
	vmmc_close(v);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "check") == 0) {
		raw_open(&r);
		tap_run("no DMA outside of the grants", checker);
		tap_run("the driver asked for nothing wrong", admin);
		raw_close(&r);
	} else if (argc == 2 && strcmp(argv[1], "quit") == 0) {
		tap_run("tell the peer to end", quit);
	} else {
		tap_bail("usage: protect_end check | quit");
	}
	return tap_end();
}
