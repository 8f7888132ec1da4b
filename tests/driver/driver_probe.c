// SPDX-License-Identifier: Apache-2.0
/*
 * Whatever step of binding a card, setting up a context, pinning, exporting or
 * importing fails: what was done before is undone, and the next try succeeds.
 * prawn_fault.ko makes one call after the other fail. Needs root, and the card
 * to itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile_raw.h"
#include "protect_scene.h"
#include "tap.h"

enum { MOST = 24, SIZE = 700 * RAW_PAGE };

enum {
	ON = 1,	      /* all further calls fail, too */
	SURVIVES = 2, /* the driver can do without */
	MAYBE = 4,    /* not in every kernel */
};

/* A function that fails by returning `value`. */
struct fault {
	const char *function[3]; /* its names in several kernels */
	long value;
	unsigned flags;
};

static char function[64]; /* as sysfs calls it: 0000:00:03.0 */

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int error = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

static int bind(void)
{
	return put("/sys/bus/pci/drivers/prawn/bind", function);
}

static void unbind(void)
{
	EXPECT_EQ(put("/sys/bus/pci/drivers/prawn/unbind", function), 0);
}

static void find_function(void)
{
	DIR *d = opendir("/sys/bus/pci/drivers/prawn");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strchr(e->d_name, ':'))
			snprintf(function, sizeof(function), "%.40s",
				 e->d_name);
	if (d)
		closedir(d);
	if (!function[0])
		tap_bail("no card bound to prawn.ko");
}

static int load(const char *name, const struct fault *f)
{
	char text[160];
	int fd = open("/tmp/prawn_fault.ko", O_RDONLY);
	int error;

	if (fd < 0)
		tap_bail("prawn_fault.ko: %s", strerror(errno));
	snprintf(text, sizeof(text), "function=%s value=%ld on=%d", name,
		 f->value, f->flags & ON);
	error = syscall(SYS_finit_module, fd, text, 0) ? -errno : 0;
	close(fd);
	return error;
}

/* Loads it for the name that this kernel has for the function. */
static const char *load_for(const struct fault *f)
{
	for (int i = 0; i < 3 && f->function[i]; i++)
		if (!load(f->function[i], f))
			return f->function[i];
	EXPECT(f->flags & MAYBE, "no probe for %s", f->function[0]);
	return NULL;
}

static void unload(void)
{
	EXPECT_EQ(syscall(SYS_delete_module, "prawn_fault", 0), 0);
}

#define FAULT_PARAMETER "/sys/module/prawn_fault/parameters/"

/* From now on call number nth fails. */
static void fail_call(unsigned nth)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nth);
	EXPECT_EQ(put(FAULT_PARAMETER "seen", "0"), 0);
	EXPECT_EQ(put(FAULT_PARAMETER "nth", text), 0);
}

/* No more; how many calls there were. */
static unsigned calls_seen(void)
{
	char text[16] = "";
	int fd;

	EXPECT_EQ(put(FAULT_PARAMETER "nth", "0"), 0);
	fd = open(FAULT_PARAMETER "seen", O_RDONLY);
	EXPECT(read(fd, text, sizeof(text) - 1) > 0, "no count");
	close(fd);
	return (unsigned)strtoul(text, NULL, 10);
}

static bool file_has(const char *path, const char *text)
{
	char line[512];
	bool has = false;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		has |= strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return has;
}

/* Nothing of the card is held. */
static void expect_unbound(const char *after)
{
	char path[128];
	unsigned char config[6] = { 0 };
	int fd;

	EXPECT(!file_has("/proc/iomem", ": prawn"),
	       "%s: registers are still claimed", after);
	EXPECT(!file_has("/proc/interrupts", "prawn"),
	       "%s: an interrupt has still a handler", after);
	EXPECT(access(RAW_DEVICE, F_OK), "%s: %s is there", after, RAW_DEVICE);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config",
		 function);
	fd = open(path, O_RDONLY);
	EXPECT(pread(fd, config, sizeof(config), 0) == sizeof(config), "%s",
	       path);
	close(fd);
	EXPECT(!(config[4] & 4), "%s: the card may still do DMA", after);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/enable",
		 function);
	EXPECT(!file_has(path, "1"), "%s: still enabled", after);
}

/* The node appears a moment after the binding. */
static void expect_works(const char *after)
{
	const struct prawn_command nop = { .opcode = PRAWN_OPCODE_NOP };
	int error = -ENOENT;
	struct raw r;

	for (int i = 0; i < 200 && error; i++) {
		error = raw_open(&r);
		if (error)
			sleep_ms(10);
	}
	if (!EXPECT(!error, "%s: open: %s", after, strerror(-error)) ||
	    !EXPECT_EQ(raw_setup(&r, 4), 0))
		return;
	EXPECT_EQ(raw_status(&r, &nop), PRAWN_STATUS_OK);
	raw_close(&r);
}

static const struct fault binding[] = {
	{ { "kmalloc_trace", "kmem_cache_alloc_trace",
	    "__kmalloc_cache_noprof" },
	  0,
	  0 },
	{ { "init_srcu_struct" }, -ENOMEM, 0 },
	{ { "ida_alloc_range" }, -ENOSPC, 0 },
	{ { "dev_set_name" }, -ENOMEM, 0 },
	{ { "pci_enable_device_mem" }, -EIO, 0 },
	{ { "pci_request_selected_regions" }, -EBUSY, 0 },
	{ { "dma_set_mask" }, -EIO, 0 },
	{ { "pci_iomap" }, 0, 0 },
	{ { "dma_alloc_attrs" }, 0, 0 },
	{ { "alloc_workqueue", "alloc_workqueue_noprof" }, 0, 0 },
	{ { "pci_alloc_irq_vectors_affinity", "pci_alloc_irq_vectors" },
	  -ENOSPC,
	  SURVIVES },
	{ { "pci_alloc_irq_vectors_affinity", "pci_alloc_irq_vectors" },
	  -ENOSPC,
	  ON },
	{ { "request_threaded_irq" }, -EBUSY, 0 },
	{ { "register_shrinker" }, -ENOMEM, MAYBE },
	{ { "shrinker_alloc" }, 0, MAYBE },
	{ { "ptp_clock_register" }, -ENOMEM, SURVIVES },
	{ { "cdev_device_add" }, -ENOMEM, 0 },
};

/* True if there was a call number nth. */
static bool bind_with(const struct fault *f, const char *name, unsigned nth)
{
	char what[96];
	unsigned seen;
	int error;

	fail_call(nth);
	error = bind();
	seen = calls_seen();
	snprintf(what, sizeof(what), "call %u of %s failed", nth, name);
	if (seen < nth || f->flags & SURVIVES) {
		EXPECT(!error, "%s: bind: %s", what, strerror(-error));
		expect_works(what);
		unbind();
	} else {
		EXPECT(error, "%s: bound all the same", what);
	}
	expect_unbound(what);
	return seen >= nth;
}

static void binding_fails(void)
{
	unsigned failures = 0;

	unbind();
	for (unsigned i = 0; i < sizeof(binding) / sizeof(*binding); i++) {
		const char *name = load_for(&binding[i]);
		unsigned nth = 1;

		if (!name)
			continue;
		while (nth < MOST && !tap.case_failed &&
		       bind_with(&binding[i], name, nth))
			nth++;
		EXPECT(nth > 1, "%s is not called", name);
		failures += nth - 1;
		unload();
	}
	EXPECT_EQ(bind(), 0);
	expect_works("the end");
	tap_note("  %u steps failed", failures);
}

/* ---- calls of a process ---------------------------------------------------
 */

static unsigned char *memory;

static int set_up(struct raw *r)
{
	return raw_setup(r, 4);
}

static int pin(struct raw *r)
{
	return raw_pin(r, memory, SIZE);
}

static int export(struct raw *r)
{
	uint32_t id;

	return raw_export(r, memory, SIZE, "probe.export", 0, &id);
}

static int import(struct raw *r)
{
	uint32_t id;

	return raw_import(r, r->query.node, "probe.target", 5000, &id, NULL);
}

static const struct {
	const char *what;
	int (*act)(struct raw *r);
	struct fault fault[7];
} calls[] = {
	{ "SETUP",
	  set_up,
	  { { { "dma_alloc_attrs" }, 0, 0 },
	    { { "kmalloc_trace", "kmem_cache_alloc_trace",
		"__kmalloc_cache_noprof" },
	      0,
	      0 },
	    { { "get_zeroed_page", "get_zeroed_page_noprof" }, 0, 0 },
	    { { "dma_map_page_attrs" }, -1, 0 } } },
	{ "PIN",
	  pin,
	  { { { "kvmalloc_node", "__kvmalloc_node_noprof" }, 0, 0 },
	    { { "get_zeroed_page", "get_zeroed_page_noprof" }, 0, 0 },
	    { { "mmu_interval_notifier_insert" }, -ENOMEM, 0 },
	    { { "pin_user_pages" }, -EFAULT, 0 },
	    /* one failure alone is tried again with what can be given back */
	    { { "dma_map_page_attrs" }, -1, ON } } },
	{ "EXPORT",
	  export,
	  { { { "kmalloc_trace", "kmem_cache_alloc_trace",
		"__kmalloc_cache_noprof" },
	      0,
	      0 },
	    { { "kvmalloc_node", "__kvmalloc_node_noprof" }, 0, 0 },
	    { { "get_zeroed_page", "get_zeroed_page_noprof" }, 0, 0 },
	    { { "mmu_interval_notifier_insert" }, -ENOMEM, 0 },
	    { { "pin_user_pages" }, -EFAULT, 0 },
	    /* one failure alone is tried again with what can be given back */
	    { { "dma_map_page_attrs" }, -1, ON } } },
	{ "IMPORT",
	  import,
	  { { { "kmalloc_trace", "kmem_cache_alloc_trace",
		"__kmalloc_cache_noprof" },
	      0,
	      0 } } },
};

static bool call_with(unsigned call, const char *name, unsigned nth)
{
	unsigned seen;
	struct raw r;
	int error;

	if (!EXPECT_EQ(raw_open(&r), 0) ||
	    (calls[call].act != set_up && !EXPECT_EQ(raw_setup(&r, 4), 0)))
		return false;
	fail_call(nth);
	error = calls[call].act(&r);
	seen = calls_seen();
	if (seen < nth) {
		EXPECT(!error, "%s: %s", calls[call].what, strerror(-error));
		raw_close(&r);
		return false;
	}
	EXPECT(error == -ENOMEM || error == -EFAULT,
	       "%s, call %u of %s failed: %s", calls[call].what, nth, name,
	       error ? strerror(-error) : "and nobody noticed");
	if (calls[call].act == pin) /* keeps what it has, and says so */
		raw_unpin(&r, memory, SIZE);
	EXPECT_EQ(raw_pinned(&r), 0);
	error = calls[call].act(&r);
	EXPECT(!error, "%s, after call %u of %s failed: %s", calls[call].what,
	       nth, name, strerror(-error));
	raw_close(&r);
	return true;
}

static void calls_fail(void)
{
	unsigned char *target = pages(RAW_PAGE);
	unsigned failures = 0;
	struct raw r;
	uint32_t id;

	memory = pages(SIZE);
	raw_start(&r, 4);
	EXPECT_EQ(raw_export(&r, target, RAW_PAGE, "probe.target", 0, &id), 0);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		for (unsigned k = 0; calls[i].fault[k].function[0]; k++) {
			const struct fault *f = &calls[i].fault[k];
			const char *name = load_for(f);
			unsigned nth = 1;

			if (!name)
				continue;
			while (nth < MOST && !tap.case_failed &&
			       call_with(i, name, nth))
				nth++;
			EXPECT(nth > 1, "%s: %s is not called", calls[i].what,
			       name);
			failures += nth - 1;
			unload();
		}
	}
	raw_close(&r);
	munmap(memory, SIZE);
	munmap(target, RAW_PAGE);
	tap_note("  %u calls failed", failures);
}

int main(void)
{
	if (geteuid())
		tap_bail("needs root");
	find_function();
	tap_run("every step of binding fails once", binding_fails);
	tap_run("every step of a call fails once", calls_fail);
	return tap_end();
}
