// SPDX-License-Identifier: Apache-2.0
/*
 * The driver meets cards that misbehave (bad_card of tests/e2e serves them):
 * it takes those that it can work with, turns the others down without keeping
 * anything of them, and believes no other node. Needs root.
 *
 * usage: driver_cards KIND=SLOT...   (PCI slots, as in 0000:00:SLOT.0)
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

static int arguments;
static char **argument;

static const char *slot_of(const char *kind)
{
	size_t n = strlen(kind);

	for (int i = 1; i < arguments; i++)
		if (!strncmp(argument[i], kind, n) && argument[i][n] == '=')
			return argument[i] + n + 1;
	tap_bail("no card of kind %s", kind);
}

static void path_of(char *path, size_t size, const char *kind, const char *file)
{
	snprintf(path, size, "/sys/bus/pci/devices/0000:00:%s.0/%s",
		 slot_of(kind), file);
}

static bool device_of(char *device, size_t size, const char *kind)
{
	char path[128];
	struct dirent *e;
	bool found = false;
	DIR *d;

	path_of(path, sizeof(path), kind, "prawn");
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "prawn", 5)) {
			snprintf(device, size, "/dev/%.32s", e->d_name);
			found = true;
		}
	if (d)
		closedir(d);
	return found;
}

/* 0, or what open() or QUERY or SETUP said. */
static int start(struct raw *r, const char *kind)
{
	char device[64];
	int error;

	if (!device_of(device, sizeof(device), kind))
		return -ENODEV;
	error = raw_open_at(r, device);
	return error ? error : raw_setup(r, 4);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	EXPECT(fd >= 0 && write(fd, text, strlen(text)) > 0, "%s: %s", path,
	       strerror(errno));
	close(fd);
}

static void driver_file(const char *file, const char *kind)
{
	char path[128], function[32];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/prawn/%s", file);
	snprintf(function, sizeof(function), "0000:00:%s.0", slot_of(kind));
	put(path, function);
}

/* A function that the driver has let go of: disabled, no DMA, no regions. */
static void expect_clean(const char *kind)
{
	char path[128], line[256], function[32];
	unsigned char config[6] = { 0 };
	bool below = false;
	int fd;
	FILE *f;

	path_of(path, sizeof(path), kind, "config");
	fd = open(path, O_RDONLY);
	EXPECT(pread(fd, config, sizeof(config), 0) == sizeof(config),
	       "%s: no configuration space", kind);
	close(fd);
	EXPECT(!(config[4] & 4), "%s may still do DMA", kind);
	path_of(path, sizeof(path), kind, "enable");
	fd = open(path, O_RDONLY);
	line[0] = 0;
	EXPECT(read(fd, line, 1) == 1 && line[0] == '0',
	       "%s is still enabled: %c", kind, line[0]);
	close(fd);
	snprintf(function, sizeof(function), ": 0000:00:%s.0", slot_of(kind));
	f = fopen("/proc/iomem", "r");
	while (f && fgets(line, sizeof(line), f)) {
		EXPECT(!below || !strstr(line, ": prawn"),
		       "%s: its registers are still claimed", kind);
		below = strstr(line, function);
	}
	if (f)
		fclose(f);
}

static void turned_down(void)
{
	static const char *const kinds[] = { "ones",	"id",	"abi",
					     "limits",	"node", "small",
					     "unready", "deaf" };
	char device[64];

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		EXPECT(!device_of(device, sizeof(device), kinds[i]),
		       "the driver took a card of kind %s", kinds[i]);
		expect_clean(kinds[i]);
	}
}

/* Interrupts reach their context, however few vectors there are. */
static void with_vectors(const char *kind, unsigned vectors)
{
	enum { MANY = 20 };
	static struct raw r[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		struct prawn_eventfd arg = { .mask = PRAWN_WAIT_COMPLETION };
		struct pollfd fd = { .events = POLLIN };

		if (!EXPECT_EQ(start(&r[i], kind), 0))
			return;
		EXPECT_EQ(r[i].query.vectors, vectors);
		if (vectors > 1)
			EXPECT(r[i].setup.vector >= 1 &&
				       r[i].setup.vector < vectors,
			       "vector %u of %u", r[i].setup.vector, vectors);
		arg.fd = fd.fd = eventfd(0, 0);
		EXPECT_EQ(raw_ioctl(r[i].fd, PRAWN_IOC_EVENTFD, &arg), 0);
		r[i].doorbell[PRAWN_DOORBELL_ARM_COMPLETION / 8] = 0;
		EXPECT(poll(&fd, 1, 10000) == 1,
		       "%s: context %u got no interrupt", kind,
		       r[i].setup.context);
		close(fd.fd);
	}
	for (unsigned i = 0; i < MANY; i++)
		raw_close(&r[i]);
	driver_file("unbind", kind);
	expect_clean(kind);
	driver_file("bind", kind);
	if (EXPECT_EQ(start(&r[0], kind), 0))
		raw_close(&r[0]);
}

static void few_vectors(void)
{
	with_vectors("vectors1", 1);
	with_vectors("vectors2", 2);
	with_vectors("vectors15", 15);
}

/* Admin commands are never acknowledged. */
static void silent(void)
{
	struct raw r;
	uint64_t begin;

	put("/sys/module/prawn/parameters/admin_timeout_ms", "1000");
	for (int i = 0; i < 2; i++) {
		begin = now_ms();
		EXPECT_EQ(start(&r, "silent"), -EIO);
		EXPECT(now_ms() - begin < 15000, "gave up after %llu ms",
		       (unsigned long long)(now_ms() - begin));
		raw_close(&r);
		EXPECT_EQ(start(&r, "silent"), -EIO); /* at once: given up */
		raw_close(&r);
		driver_file("unbind", "silent");
		expect_clean("silent");
		driver_file("bind", "silent");
	}
	put("/sys/module/prawn/parameters/admin_timeout_ms", "30000");
}

/* Each is refused: nothing is used up by it. */
static void refuses(void)
{
	struct raw r;

	for (int i = 0; i < 2 * PRAWN_CONTEXTS; i++) {
		if (!EXPECT_EQ(start(&r, "refuses"), -EPROTO))
			break;
		raw_close(&r);
	}
}

/* The sum of "importers N" in the driver's list of exports. */
static unsigned importers(const char *device)
{
	char path[128], line[512], *at;
	unsigned sum = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/prawn/%s/rendezvous",
		 strrchr(device, '/') + 1);
	f = fopen(path, "r");
	EXPECT(f, "%s: %s", path, strerror(errno));
	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, "importers ");
		sum += at ? (unsigned)strtoul(at + 10, NULL, 10) : 0;
	}
	if (f)
		fclose(f);
	return sum;
}

/* Another node sends what it likes, as fast as it can. */
static void babbles(void)
{
	enum { EXPORTS = 8, EVENTS = 8000, NODES = 2, NUMBERS = 64 };
	unsigned char *p = pages(RAW_PAGE);
	struct prawn_query q = { 0 };
	uint32_t id[EXPORTS], import;
	uint64_t end, length;
	char device[64];
	struct raw r;

	/* It babbles when it has heard of all the exports. */
	if (!EXPECT_EQ(start(&r, "babbles"), 0) ||
	    !device_of(device, sizeof(device), "babbles"))
		return;
	for (unsigned i = 0; i < EXPORTS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "bad.%u", i);
		EXPECT_EQ(raw_export(&r, p, RAW_PAGE, name, 0, &id[i]), 0);
	}
	end = now_ms() + 120000;
	do {
		/* Its answers are as good as any: nonsense, or none. */
		int error = raw_import(&r, 1, "anything", 10, &import, &length);

		EXPECT(error == 0 || error == -ETIMEDOUT || error == -EPROTO ||
			       error == -ENOENT || error == -EACCES ||
			       error == -EHOSTDOWN,
		       "import: %s", strerror(-error));
		if (!error)
			raw_unimport(&r, import);
		EXPECT_EQ(raw_ioctl(r.fd, PRAWN_IOC_QUERY, &q), 0);
	} while (q.profile < EVENTS && now_ms() < end && !tap.case_failed);
	EXPECT_EQ(q.profile, EVENTS);
	sleep_ms(500);
	tap_note("  %u importers are remembered", importers(device));
	EXPECT(importers(device) <= NODES * NUMBERS,
	       "%u importers: more than there are numbers", importers(device));
	for (unsigned i = 0; i < EXPORTS; i++)
		EXPECT_EQ(raw_unexport(&r, id[i]), 0);
	EXPECT_EQ(importers(device), 0);
	raw_close(&r);
	munmap(p, RAW_PAGE);
}

int main(int argc, char **argv)
{
	if (geteuid())
		tap_bail("needs root");
	arguments = argc;
	argument = argv;
	tap_run("cards that cannot be used are turned down", turned_down);
	tap_run("few vectors", few_vectors);
	tap_run("admin commands without an answer", silent);
	tap_run("admin commands that are refused", refuses);
	tap_run("a node that babbles", babbles);
	return tap_end();
}
