// SPDX-License-Identifier: Apache-2.0
/*
 * What the device file does not let a process map, and what another process
 * cannot do with a descriptor or a mapping that it has inherited.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { UID = 3003 };

static struct raw r;
static sigjmp_buf jump;

static int try_map(uint64_t offset, size_t size, int protection, int flags)
{
	void *p = mmap(NULL, size, protection, flags, r.fd, (off_t)offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

static uint64_t offset_of(unsigned region)
{
	return r.setup.region[region].offset;
}

static void foreign_doorbells(void)
{
	uint64_t own = offset_of(PRAWN_REGION_DOORBELL);
	const int both = PROT_READ | PROT_WRITE;

	EXPECT_EQ(r.setup.region[PRAWN_REGION_DOORBELL].size, PRAWN_PAGE_SIZE);
	for (unsigned i = 1; i < 2 * PRAWN_CONTEXTS; i++)
		EXPECT(try_map(own + i * PRAWN_PAGE_SIZE, PRAWN_PAGE_SIZE, both,
			       MAP_SHARED) == -EINVAL,
		       "doorbell page %u after ours can be mapped", i);
	for (unsigned i = 2; i <= PRAWN_CONTEXTS; i++)
		EXPECT(try_map(own, i * PRAWN_PAGE_SIZE, both, MAP_SHARED) ==
			       -EINVAL,
		       "%u doorbell pages can be mapped", i);
	EXPECT_EQ(try_map(own, PRAWN_PAGE_SIZE, both, MAP_SHARED), 0);
}

static void offsets(void)
{
	struct random random = { 7 };

	for (unsigned region = 0; region < PRAWN_REGIONS; region++) {
		uint64_t size = r.setup.region[region].size;
		uint64_t offset = offset_of(region);

		EXPECT(try_map(offset + size, RAW_PAGE, PROT_READ,
			       MAP_SHARED) == -EINVAL,
		       "region %u: mapped behind its end", region);
		EXPECT(try_map(offset, size + RAW_PAGE, PROT_READ,
			       MAP_SHARED) == -EINVAL,
		       "region %u: mapped longer than it is", region);
		if (size)
			EXPECT_EQ(try_map(offset, size, PROT_READ, MAP_SHARED),
				  0);
	}
	for (unsigned i = 0; i < 5000; i++) {
		/* Page aligned, and any region number there could be. */
		uint64_t offset =
			random_next(&random) >> random_below(&random, 40) &
			0x7ffffffffffff000;
		bool ours = false;

		for (unsigned k = 0; k < PRAWN_REGIONS; k++)
			ours |= offset >= offset_of(k) &&
				offset < offset_of(k) + r.setup.region[k].size;
		EXPECT(ours || try_map(offset, RAW_PAGE, PROT_READ,
				       MAP_SHARED) < 0,
		       "offset %#llx can be mapped",
		       (unsigned long long)offset);
	}
}

static void protections(void)
{
	const unsigned card_writes[] = { PRAWN_REGION_COMPLETION,
					 PRAWN_REGION_NOTIFICATION };
	const int both = PROT_READ | PROT_WRITE;

	for (int i = 0; i < 2; i++)
		EXPECT_EQ(try_map(offset_of(card_writes[i]), RAW_PAGE, both,
				  MAP_SHARED),
			  -EACCES);
	EXPECT(mprotect((void *)(uintptr_t)r.completion, RAW_PAGE, both) &&
		       errno == EACCES,
	       "mprotect made the completion ring writable");
	EXPECT(mprotect((void *)(uintptr_t)r.notification, RAW_PAGE, both) &&
		       errno == EACCES,
	       "mprotect made the notification ring writable");
	for (unsigned i = 0; i <= PRAWN_REGION_DOORBELL; i++) {
		EXPECT_EQ(
			try_map(offset_of(i), RAW_PAGE, PROT_READ, MAP_PRIVATE),
			-EINVAL);
		EXPECT_EQ(try_map(offset_of(i), RAW_PAGE, PROT_READ | PROT_EXEC,
				  MAP_SHARED),
			  -EACCES);
	}
	EXPECT(mremap((void *)(uintptr_t)r.doorbell, RAW_PAGE, 2 * RAW_PAGE,
		      MREMAP_MAYMOVE) == MAP_FAILED,
	       "the doorbell mapping can grow");
	EXPECT(mremap(r.command, r.setup.region[PRAWN_REGION_COMMAND].size,
		      2 * r.setup.region[PRAWN_REGION_COMMAND].size,
		      MREMAP_MAYMOVE) == MAP_FAILED,
	       "the command ring can grow");
}

static void before_setup(void)
{
	struct raw fresh;

	if (!EXPECT_EQ(raw_open(&fresh), 0))
		return;
	for (unsigned i = 0; i < PRAWN_REGIONS; i++) {
		void *p = mmap(NULL, RAW_PAGE, PROT_READ, MAP_SHARED, fresh.fd,
			       (off_t)fresh.query.region[i].offset);

		EXPECT(p == MAP_FAILED, "region %u mapped before SETUP", i);
	}
	EXPECT_EQ(raw_pin(&fresh, &fresh, 1), -ENOTCONN);
	raw_close(&fresh);
}

static void on_fault(int number)
{
	siglongjmp(jump, number);
}

static int faults(const volatile void *p)
{
	int number = sigsetjmp(jump, 1);

	if (number)
		return number;
	(void)*(const volatile unsigned char *)p;
	return 0;
}

/* In the child: everything is refused. The exit status says what was not. */
static int as_child(void)
{
	struct prawn_setup setup = { .command_log2 = 4, .notify_log2 = 4 };
	struct prawn_query query;
	uint32_t id;

	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	if (!faults(r.command) || !faults(r.completion) ||
	    !faults(r.notification) || !faults(r.doorbell))
		return 1;
	if (raw_ioctl(r.fd, PRAWN_IOC_QUERY, &query) != -EPERM)
		return 2;
	if (raw_ioctl(r.fd, PRAWN_IOC_SETUP, &setup) != -EPERM)
		return 3;
	if (raw_pin(&r, &id, 1) != -EPERM || raw_unpin(&r, &id, 1) != -EPERM)
		return 4;
	if (raw_import(&r, PEER_NODE, NAME_SANDBOX, 0, &id, NULL) != -EPERM)
		return 5;
	if (try_map(offset_of(PRAWN_REGION_DOORBELL), RAW_PAGE,
		    PROT_READ | PROT_WRITE, MAP_SHARED) != -EPERM)
		return 6;
	return 0;
}

static void inherited(void)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(as_child());
	waitpid(pid, &status, 0);
	EXPECT(status == 0, "child: status %#x", (unsigned)status);
	/* The parent's context has not suffered. */
	EXPECT_EQ(raw_state(&r), PRAWN_STATE_ENABLED_MASK);
	EXPECT_EQ(raw_status(&r,
			     &(struct prawn_command){
				     .opcode = PRAWN_OPCODE_NOP, .cookie = 1 }),
		  PRAWN_STATUS_OK);
}

static void no_second_setup(void)
{
	struct prawn_setup setup = { .command_log2 = 4, .notify_log2 = 4 };

	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_SETUP, &setup), -EALREADY);
	setup.command_log2 = 13;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_SETUP, &setup), -EINVAL);
}

int main(void)
{
	become(UID, UID);
	raw_start(&r, 6);
	victim_mark();
	tap_run("no doorbell page but the own one", foreign_doorbells);
	tap_run("no offset beyond the regions", offsets);
	tap_run("no more rights than the region has", protections);
	tap_run("nothing before SETUP", before_setup);
	tap_run("one SETUP", no_second_setup);
	tap_run("a child has no use of what it inherits", inherited);
	tap_run("the victim", victim_expect_progress);
	raw_close(&r);
	return tap_end();
}
