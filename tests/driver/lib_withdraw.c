// SPDX-License-Identifier: Apache-2.0
/*
 * vmmc_unexport and vmmc_unimport while others are in the middle of sending.
 *
 * usage: lib_withdraw [ROUNDS]
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "lib_scene.h"

enum { SIZE = 64 * PAGE, SENDERS = 2 };

static unsigned rounds = 25;
static vmmc_t *to;
static unsigned node;
static struct guarded inbox;
static atomic_uint arrived, importers;

static bool is_loss(int error)
{
	unsigned status = (unsigned)VMMC_CARD_STATUS(error);

	return status == PRAWN_STATUS_BAD_EXPORT ||
	       status == PRAWN_STATUS_BAD_IMPORT ||
	       status == PRAWN_STATUS_IMPORT_ERROR ||
	       status == PRAWN_STATUS_BAD_KEY;
}

/* Imports, sends until that fails, hears of it, lets go. */
static void *sender(void *arg)
{
	vmmc_t *v = lib_open();
	unsigned char *source = pages(SIZE);
	uint64_t end = now_ms() + 30000;
	struct vmmc_notification n;
	vmmc_import_t *i;
	int error;

	(void)arg;
	memset(source, 0x44, SIZE);
	error = vmmc_import(v, node, "lib.withdraw", 5000, source, &i);
	importers++;
	if (EXPECT_OK(error)) {
		while (!(error = vmmc_send(i, 0, source, SIZE, 0, 0))) {
			arrived++;
			if (!EXPECT(now_ms() < end, "sends go on succeeding"))
				break;
		}
		EXPECT(is_loss(error), "send: %s", vmmc_strerror(error));
		EXPECT_EQ(vmmc_wait(v, &n, 10000), 1);
		EXPECT(n.type == VMMC_IMPORT_LOST && n.object == source &&
			       is_loss(n.error),
		       "notification of type %d: %s", n.type,
		       vmmc_strerror(n.error));
		EXPECT(vmmc_send(i, 0, source, 8, 0, 0) < 0, "sent to nobody");
		EXPECT_OK(vmmc_unimport(i));
	}
	vmmc_close(v);
	munmap(source, SIZE);
	return NULL;
}

static void unexport(void)
{
	struct random random = { 23 };

	for (unsigned k = 0; k < rounds && !tap.case_failed; k++) {
		pthread_t thread[SENDERS];
		vmmc_export_t *e;
		unsigned before = arrived;
		uint64_t end = now_ms() + 10000;
		long touched;

		if (!EXPECT_OK(vmmc_export(to, inbox.buffer, SIZE,
					   "lib.withdraw", 0, NULL, &e)))
			return;
		importers = 0;
		for (unsigned i = 0; i < SENDERS; i++)
			pthread_create(&thread[i], NULL, sender, NULL);
		while ((importers < SENDERS || arrived == before) &&
		       now_ms() < end)
			usleep(200);
		usleep((unsigned)random_below(&random, 3000));
		EXPECT_OK(vmmc_unexport(e));
		memset(inbox.buffer, CHECK_FILL, SIZE);
		for (unsigned i = 0; i < SENDERS; i++)
			pthread_join(thread[i], NULL);
		touched = first_other(inbox.buffer, SIZE, CHECK_FILL);
		EXPECT(touched < 0, "byte %ld written after vmmc_unexport",
		       touched);
		guarded_intact(&inbox, "inbox");
	}
	tap_note("  %u messages arrived", arrived);
}

/* The import goes while its own requests are under way. */
static void unimport(void)
{
	vmmc_t *v = lib_open();
	unsigned char *source = pages(SIZE);
	vmmc_export_t *e;

	if (!EXPECT_OK(vmmc_export(to, inbox.buffer, SIZE, "lib.unimport", 0,
				   NULL, &e)))
		return;
	for (unsigned k = 0; k < rounds && !tap.case_failed; k++) {
		vmmc_request_t request[8];
		struct vmmc_completion c;
		vmmc_import_t *i;

		if (!EXPECT_OK(vmmc_import(v, node, "lib.unimport", 5000, NULL,
					   &i)))
			break;
		for (unsigned n = 0; n < 8; n++)
			EXPECT_OK(vmmc_isend(i, 0, source, SIZE, 0, 0,
					     &request[n]));
		EXPECT_OK(vmmc_unimport(i));
		for (unsigned n = 0; n < 8; n++) {
			EXPECT_EQ(vmmc_complete(v, request[n], &c, 10000), 1);
			EXPECT(!c.error || is_loss(c.error), "%s",
			       vmmc_strerror(c.error));
		}
	}
	EXPECT_OK(vmmc_unexport(e));
	guarded_intact(&inbox, "inbox");
	vmmc_close(v);
	munmap(source, SIZE);
}

int main(int argc, char **argv)
{
	struct vmmc_info info;

	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 0);
	become(LIB_UID, LIB_UID);
	to = lib_open();
	vmmc_query(to, &info);
	node = info.node;
	if (!guarded_make(&inbox, SIZE, 92, NULL))
		tap_bail("no memory");
	tap_run("vmmc_unexport while others send", unexport);
	tap_run("vmmc_unimport with requests under way", unimport);
	vmmc_close(to);
	return tap_end();
}
