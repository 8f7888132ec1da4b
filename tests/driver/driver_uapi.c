// SPDX-License-Identifier: Apache-2.0
/*
 * What prawn.h of the uapi promises, call by call, on one node: arguments that
 * are wrong, results, errors, and that a failing call changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "tap.h"

static struct raw r;

static unsigned char *pages(unsigned n)
{
	void *p = mmap(NULL, n * RAW_PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	memset(p, 1, n * RAW_PAGE);
	return p;
}

static void query(void)
{
	struct raw other;

	if (!EXPECT_EQ(raw_open(&other), 0))
		return;
	EXPECT_EQ(other.query.uapi, PRAWN_UAPI_VERSION);
	EXPECT_EQ(other.query.card_abi >> 16, PRAWN_ABI_MAJOR);
	EXPECT(other.query.node < other.query.nodes, "node %u of %u",
	       other.query.node, other.query.nodes);
	EXPECT(other.query.epoch != 0, "epoch 0");
	EXPECT_EQ(other.query.context, PRAWN_NO_CONTEXT);
	EXPECT_EQ(other.query.pinned, 0);
	for (int i = 0; i < PRAWN_REGIONS; i++)
		EXPECT_EQ(other.query.region[i].size, 0);
	EXPECT_EQ(raw_setup(&other, 4), 0);
	EXPECT_EQ(raw_ioctl(other.fd, PRAWN_IOC_QUERY, &other.query), 0);
	EXPECT_EQ(other.query.context, other.setup.context);
	EXPECT_EQ(other.query.command_log2, 4);
	EXPECT_EQ(memcmp(other.query.region, other.setup.region,
			 sizeof(other.query.region)),
		  0);
	raw_close(&other);
}

static void before_setup(void)
{
	struct prawn_pin pin = { .address = RAW_PAGE, .length = 1 };
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT };
	struct prawn_event event;
	struct raw other;
	uint64_t length;
	uint32_t id;

	if (!EXPECT_EQ(raw_open(&other), 0))
		return;
	EXPECT_EQ(raw_ioctl(other.fd, PRAWN_IOC_PIN, &pin), -ENOTCONN);
	EXPECT_EQ(raw_ioctl(other.fd, PRAWN_IOC_WAIT, &wait), -ENOTCONN);
	EXPECT_EQ(raw_ioctl(other.fd, PRAWN_IOC_EVENT, &event), -ENOTCONN);
	EXPECT_EQ(raw_export(&other, &id, 4, "uapi.early", 0, &id), -ENOTCONN);
	EXPECT_EQ(raw_import(&other, 0, "uapi.early", 0, &id, &length),
		  -ENOTCONN);
	raw_close(&other);
}

static void setup_arguments(void)
{
	const struct prawn_setup bad[] = {
		{ .command_log2 = 3, .notify_log2 = 4 },
		{ .command_log2 = 4, .notify_log2 = 3 },
		{ .command_log2 = 13, .notify_log2 = 4 },
		{ .command_log2 = 4, .notify_log2 = 0xffffffff },
		{ .command_log2 = 4, .notify_log2 = 4, .flags = 1 },
		{ .command_log2 = 4, .notify_log2 = 4, .rsvd = 1 },
	};
	struct prawn_setup arg;
	struct raw other;

	if (!EXPECT_EQ(raw_open(&other), 0))
		return;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		arg = bad[i];
		EXPECT_EQ(raw_ioctl(other.fd, PRAWN_IOC_SETUP, &arg), -EINVAL);
	}
	EXPECT_EQ(ioctl(other.fd, PRAWN_IOC_SETUP, NULL), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_EQ(raw_setup(&other, 12), 0);
	EXPECT_EQ(other.setup.region[PRAWN_REGION_COMMAND].size, 4096 * 64);
	EXPECT_EQ(raw_ioctl(other.fd, PRAWN_IOC_SETUP, &other.setup),
		  -EALREADY);
	raw_close(&other);
}

static void reserved_fields(void)
{
	unsigned char *p = pages(1);
	struct prawn_pin pin = { .address = (uintptr_t)p, .length = 1 };
	struct prawn_unpin unpin = { .address = (uintptr_t)p, .length = 1 };
	struct prawn_export export = { .address = (uintptr_t)p,
				       .length = 1,
				       .name = "uapi.rsvd" };
	struct prawn_import import = { .name = "uapi.rsvd" };
	struct prawn_unexport unexport = { .rsvd = 1 };
	struct prawn_unimport unimport = { .rsvd = 1 };
	struct prawn_wait wait = { .mask = PRAWN_WAIT_EVENT };
	struct prawn_eventfd event = { .fd = -1, .mask = PRAWN_WAIT_EVENT };

	pin.rsvd = 1;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EINVAL);
	pin.rsvd = 0;
	pin.flags = 2;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EINVAL);
	unpin.flags = 1;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_UNPIN, &unpin), -EINVAL);
	export.flags = 2;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EXPORT, &export), -EINVAL);
	export.flags = 0;
	export.access = 4;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EXPORT, &export), -EINVAL);
	import.flags = 1;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_IMPORT, &import), -EINVAL);
	import.flags = 0;
	import.node = r.query.nodes;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_IMPORT, &import), -EINVAL);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_UNEXPORT, &unexport), -EINVAL);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_UNIMPORT, &unimport), -EINVAL);
	wait.flags = 1;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), -EINVAL);
	wait.flags = 0;
	wait.mask = 8;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_WAIT, &wait), -EINVAL);
	event.mask = 0;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &event), -EINVAL);
	EXPECT_EQ(raw_pinned(&r), 0);
	munmap(p, RAW_PAGE);
}

static void names(void)
{
	unsigned char *p = pages(1);
	struct prawn_export export = { .address = (uintptr_t)p,
				       .length = 10,
				       .node_mask = ~0ull };
	uint32_t id, other;

	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EXPORT, &export), -EINVAL);
	memset(export.name, 'x', sizeof(export.name)); /* no NUL */
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EXPORT, &export), -EINVAL);
	EXPECT_EQ(raw_export(&r, p, 0, "uapi.empty", 0, &id), -EINVAL);
	EXPECT_EQ(raw_export(&r, p, 10, "uapi.name", 0, &id), 0);
	EXPECT_EQ(raw_export(&r, p, 10, "uapi.name", 0, &other), -EEXIST);
	EXPECT_EQ(raw_unexport(&r, id), 0);
	EXPECT_EQ(raw_unexport(&r, id), -ENOENT);
	EXPECT_EQ(raw_export(&r, p, 10, "uapi.name", 0, &id), 0);
	EXPECT_EQ(raw_unexport(&r, id), 0);
	EXPECT_EQ(raw_pinned(&r), 0);
	munmap(p, RAW_PAGE);
}

static void pin_ranges(void)
{
	unsigned char *p = pages(8);
	struct prawn_pin pin = { .length = 1 };

	pin.length = 0;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EINVAL);
	pin.address = 4096;
	pin.length = ~0ull - 100;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EINVAL);
	pin.address = 0xffff800000000000ull;
	pin.length = 4096;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EINVAL);

	/* a hole in the middle: what lies before it is pinned, and said so */
	munmap(p + 5 * RAW_PAGE, RAW_PAGE);
	pin.address = (uintptr_t)p + 100;
	pin.length = 8 * RAW_PAGE - 100;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EFAULT);
	EXPECT_EQ(pin.pinned, 5 * RAW_PAGE - 100);
	EXPECT_EQ(raw_pinned(&r), 5 * RAW_PAGE);

	/* one UNPIN undoes two PINs; not pinned is passed over */
	EXPECT_EQ(raw_pin(&r, p, 5 * RAW_PAGE), 0);
	EXPECT_EQ(raw_pinned(&r), 5 * RAW_PAGE);
	EXPECT_EQ(raw_unpin(&r, p + RAW_PAGE + 7, 1), 0);
	EXPECT_EQ(raw_pinned(&r), 4 * RAW_PAGE);
	EXPECT_EQ(raw_unpin(&r, p, 8 * RAW_PAGE), 0);
	EXPECT_EQ(raw_pinned(&r), 0);
	munmap(p, 8 * RAW_PAGE);
}

static void export_holds(void)
{
	unsigned char *p = pages(4);
	uint32_t id;

	EXPECT_EQ(raw_pin(&r, p, RAW_PAGE), 0); /* for reading */
	EXPECT_EQ(raw_export(&r, p, 2 * RAW_PAGE, "uapi.hold", 0, &id), 0);
	EXPECT_EQ(raw_pinned(&r), 2 * RAW_PAGE);
	EXPECT_EQ(raw_unpin(&r, p, 4 * RAW_PAGE), 0);
	EXPECT_EQ(raw_pinned(&r), 2 * RAW_PAGE);
	EXPECT_EQ(raw_pin(&r, p + RAW_PAGE, 2 * RAW_PAGE), 0);
	EXPECT_EQ(raw_pinned(&r), 3 * RAW_PAGE);
	EXPECT_EQ(raw_unexport(&r, id), 0);
	EXPECT_EQ(raw_pinned(&r), 2 * RAW_PAGE);
	EXPECT_EQ(raw_unpin(&r, p, 4 * RAW_PAGE), 0);
	EXPECT_EQ(raw_pinned(&r), 0);
	munmap(p, 4 * RAW_PAGE);
}

static void pin_permissions(void)
{
	unsigned char *p = pages(1);
	struct prawn_pin pin = { .address = (uintptr_t)p,
				 .length = RAW_PAGE,
				 .flags = PRAWN_PIN_WRITE };
	uint32_t id;

	mprotect(p, RAW_PAGE, PROT_READ);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EFAULT);
	EXPECT_EQ(pin.pinned, 0);
	EXPECT_EQ(raw_export(&r, p, 1, "uapi.readonly", 0, &id), -EFAULT);
	pin.flags = 0;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), 0);
	mprotect(p, RAW_PAGE, PROT_NONE);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EFAULT);
	munmap(p, RAW_PAGE);

	/* the card's own regions are no memory */
	pin.address = (uintptr_t)r.doorbell;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EFAULT);
	pin.address = (uintptr_t)r.command;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EFAULT);
	EXPECT_EQ(raw_pinned(&r), 0);
}

/* ramfs stands for the file systems that want to be asked before a write. */
static void shared_files(void)
{
	struct prawn_pin pin = { .length = RAW_PAGE, .flags = PRAWN_PIN_WRITE };
	void *p;
	int fd;

	mkdir("/tmp/ramfs", 0755);
	if (mount("ramfs", "/tmp/ramfs", "ramfs", 0, NULL)) {
		tap_skip("needs root to mount a file system");
		return;
	}
	fd = open("/tmp/ramfs/file", O_RDWR | O_CREAT, 0600);
	EXPECT_EQ(ftruncate(fd, RAW_PAGE), 0);
	p = mmap(NULL, RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pin.address = (uintptr_t)p;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), -EOPNOTSUPP);
	pin.flags = 0;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), 0);
	munmap(p, RAW_PAGE);
	close(fd);
	umount("/tmp/ramfs");

	fd = memfd_create("uapi", 0);
	EXPECT_EQ(ftruncate(fd, RAW_PAGE), 0);
	p = mmap(NULL, RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pin.address = (uintptr_t)p;
	pin.flags = PRAWN_PIN_WRITE;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin), 0);
	munmap(p, RAW_PAGE);
	close(fd);
}

static void eventfds(void)
{
	struct prawn_eventfd arg = { .fd = 0, .mask = PRAWN_WAIT_EVENT };
	int null = open("/dev/null", O_RDWR);
	int fd = eventfd(0, EFD_NONBLOCK);

	arg.fd = null;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), -EINVAL);
	close(null);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), -EBADF);
	arg.fd = -2;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), -EINVAL);
	arg.fd = fd;
	arg.mask = PRAWN_WAIT_EVENT | PRAWN_WAIT_COMPLETION;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), 0);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), 0);
	arg.fd = -1;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), 0);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_EVENTFD, &arg), 0);
	close(fd);
}

static void counters(void)
{
	struct prawn_counter arg = { .scope = PRAWN_COUNTER_CARD };
	unsigned n[2] = { 0, 0 };

	for (arg.scope = 0; arg.scope < 2; arg.scope++)
		for (arg.index = 0; !raw_ioctl(r.fd, PRAWN_IOC_COUNTER, &arg);
		     arg.index++) {
			EXPECT(strchr(arg.name, '.') != NULL, "name \"%s\"",
			       arg.name);
			n[arg.scope]++;
		}
	EXPECT(n[0] > 0 && n[1] > 0, "%u and %u counters", n[0], n[1]);
	arg.scope = 0;
	arg.index = n[0];
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_COUNTER, &arg), -ENOENT);
	arg.scope = 2;
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_COUNTER, &arg), -EINVAL);
}

/* A child has another address space, even if it changes nothing. */
static void child(void)
{
	struct prawn_query q;
	struct prawn_pin pin = { .address = 4096, .length = 1 };
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		int bad = raw_ioctl(r.fd, PRAWN_IOC_QUERY, &q) != -EPERM ||
			  raw_ioctl(r.fd, PRAWN_IOC_PIN, &pin) != -EPERM;
		void *p = mmap(NULL, RAW_PAGE, PROT_READ, MAP_SHARED, r.fd, 0);

		_exit(bad || p != MAP_FAILED || errno != EPERM);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_QUERY, &q), 0);
}

int main(void)
{
	raw_start(&r, 4);
	tap_run("QUERY before and after SETUP", query);
	tap_run("calls before SETUP", before_setup);
	tap_run("arguments of SETUP", setup_arguments);
	tap_run("reserved fields and unknown flags", reserved_fields);
	tap_run("names of exports", names);
	tap_run("ranges of PIN and UNPIN", pin_ranges);
	tap_run("exports hold their pages", export_holds);
	tap_run("PIN asks for the permissions it needs", pin_permissions);
	tap_run("shared mappings of files", shared_files);
	tap_run("arguments of EVENTFD", eventfds);
	tap_run("counters", counters);
	tap_run("a child gets EPERM", child);
	raw_close(&r);
	return tap_end();
}
