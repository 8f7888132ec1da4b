// SPDX-License-Identifier: Apache-2.0
/*
 * The card's PTP hardware clock by the kernel's interface to such clocks, while
 * guests run free: it keeps the system's time, is set, adjusted and steered by
 * the right amount, and goes with its card. Comparisons are of intervals: each
 * read is bracketed by the system's time, and what the brackets leave open is
 * taken into account. Needs root, and the card to itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <linux/ptp_clock.h>

#include "hostile_raw.h"
#include "ptp_device.h"
#include "tap.h"

enum { SAMPLES = 25, READERS = 3 };

static const int64_t SECOND = 1000000000;

/* One read of the clock between two of the system's (CLOCK_REALTIME), ns. */
struct stamp {
	int64_t before, at, after;
};

struct range {
	double low, high;
};

static char function[64]; /* as sysfs calls it: 0000:00:03.0 */
static struct ptp_device c;
static struct range nominal; /* its rate by the system's clock */

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int error = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
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

/* The device appears a moment after its binding. */
static int open_clock(struct ptp_device *clock, int flags)
{
	int error = -ENOENT;

	for (int i = 0; i < 200 && error && error != -ENXIO; i++) {
		error = ptp_open(clock, RAW_DEVICE, flags);
		if (error)
			sleep_ms(10);
	}
	return error;
}

static int64_t ns_of(const struct ptp_clock_time *t)
{
	return t->sec * SECOND + t->nsec;
}

/* The one in the narrowest bracket of many. */
static struct stamp take(const struct ptp_device *clock)
{
	struct ptp_sys_offset_extended arg = { .n_samples = SAMPLES };
	struct stamp best = { 0 }, last = { 0 };

	EXPECT(!ioctl(clock->fd, PTP_SYS_OFFSET_EXTENDED, &arg), "stamps: %s",
	       strerror(errno));
	for (int i = 0; i < SAMPLES; i++) {
		const struct stamp s = { ns_of(&arg.ts[i][0]),
					 ns_of(&arg.ts[i][1]),
					 ns_of(&arg.ts[i][2]) };

		EXPECT(s.before <= s.after && (!i || last.after <= s.before),
		       "sample %d: the system's time falls", i);
		EXPECT(!i || last.at < s.at, "sample %d: the clock stands", i);
		if (!i || s.after - s.before < best.after - best.before)
			best = s;
		last = s;
	}
	return best;
}

/* The system's time between two stamps, by what is sure of it. */
static struct range between(const struct stamp *a, const struct stamp *b)
{
	return (struct range){ (double)(b->before - a->after),
			       (double)(b->after - a->before) };
}

/* Known to one in a hundred, or the case fails. */
static struct range rate(const struct ptp_device *clock)
{
	struct range r = { 0, 0 };

	for (unsigned ms = 600; ms <= 4800 && !tap.case_failed; ms *= 2) {
		const struct stamp a = take(clock);
		struct stamp b;
		struct range time;

		sleep_ms(ms);
		b = take(clock);
		time = between(&a, &b);
		r.low = (double)(b.at - a.at) / time.high;
		r.high = (double)(b.at - a.at) / time.low;
		if (time.low > 0 && r.high - r.low < r.low / 100)
			return r;
	}
	EXPECT(tap.case_failed, "the brackets are too wide: %f to %f", r.low,
	       r.high);
	return r;
}

static void is_there(void)
{
	char path[128], text[64] = "", line[128], want[64];
	struct ptp_clock_caps caps;
	struct timespec t;
	bool told = false;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/ptp/ptp%u",
		 function, c.index);
	EXPECT(!access(path, F_OK), "%s: %s", path, strerror(errno));
	snprintf(path, sizeof(path), "/sys/class/ptp/ptp%u/clock_name",
		 c.index);
	fd = open(path, O_RDONLY);
	EXPECT(read(fd, text, sizeof(text) - 1) > 0 &&
		       !strcmp(text, "prawn0\n"),
	       "%s: %s", path, text);
	close(fd);

	memset(&caps, 0xff, sizeof(caps));
	EXPECT_EQ(ioctl(c.fd, PTP_CLOCK_GETCAPS, &caps), 0);
	EXPECT_EQ(caps.max_adj, PRAWN_PTP_MAX_PPB);
	EXPECT_EQ(caps.n_alarm, 0);
	EXPECT_EQ(caps.n_ext_ts, 0);
	EXPECT_EQ(caps.n_per_out, 0);
	EXPECT_EQ(caps.pps, 0);
	EXPECT_EQ(caps.n_pins, 0);
	EXPECT_EQ(caps.cross_timestamping, 0);
	EXPECT_EQ(caps.adjust_phase, 0);
	EXPECT_EQ(clock_getres(c.id, &t), 0);
	EXPECT(t.tv_sec == 0 && t.tv_nsec == 1, "resolution");

	snprintf(want, sizeof(want), "PTP clock    /dev/ptp%u\n", c.index);
	f = popen("vmmc_info", "r");
	while (f && fgets(line, sizeof(line), f))
		told |= !strcmp(line, want);
	EXPECT(f && !pclose(f) && told, "vmmc_info does not say: %s", want);
}

static void keeps_time(void)
{
	int64_t last = INT64_MIN, now;
	struct stamp s;

	for (int i = 0; i < 500; i++) {
		if (!EXPECT_EQ(ptp_read(&c, &now), 0))
			return;
		EXPECT(now > last, "%" PRId64 " after %" PRId64, now, last);
		last = now;
	}
	nominal = rate(&c);
	s = take(&c);
	tap_note("  rate %.6f to %.6f, narrowest bracket %" PRId64 " ns",
		 nominal.low, nominal.high, s.after - s.before);
	/* The guest measured its processor's clock when it started. */
	EXPECT(nominal.high > 0.95 && nominal.low < 1.05, "%f to %f",
	       nominal.low, nominal.high);
}

static void is_set(void)
{
	static const int64_t times[] = { 1700000000123456789, 0, 1,
					 4000000000999999999 };

	for (unsigned i = 0; i < sizeof(times) / sizeof(*times); i++) {
		const struct stamp a = take(&c);
		struct stamp b;

		if (!EXPECT_EQ(ptp_set(&c, times[i]), 0))
			return;
		b = take(&c);
		EXPECT(b.at >= times[i] &&
			       (double)(b.at - times[i]) <=
				       between(&a, &b).high * nominal.high + 1,
		       "set to %" PRId64 ", is %" PRId64, times[i], b.at);
	}
}

static void is_adjusted(void)
{
	static const int64_t steps[] = { 1,
					 -1,
					 999999999,
					 -999999999,
					 1000000000,
					 -1000000000,
					 3600000000123,
					 -3600000000123,
					 31557600000000001,
					 -31557600000000001 };
	int64_t widest = 0;

	EXPECT_EQ(ptp_set(&c, 2 * steps[8]), 0);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		const struct stamp a = take(&c);
		struct range time;
		struct stamp b;
		double passed;

		if (!EXPECT_EQ(ptp_adjust(&c, steps[i]), 0))
			return;
		b = take(&c);
		time = between(&a, &b);
		passed = (double)(b.at - a.at - steps[i]);
		EXPECT(passed >= time.low * nominal.low - 1 &&
			       passed <= time.high * nominal.high + 1,
		       "adjusted by %" PRId64
		       ", %.0f beside it, in %.0f to %.0f",
		       steps[i], passed, time.low, time.high);
		if (time.high - time.low > (double)widest)
			widest = (int64_t)(time.high - time.low);
	}
	tap_note("  each step within %" PRId64 " ns", widest);
}

static void is_steered(void)
{
	static const long ppm[] = { 100000, -100000, 500000, -500000, 0 };

	for (unsigned i = 0; i < sizeof(ppm) / sizeof(*ppm); i++) {
		const double factor = 1 + (double)ppm[i] / 1e6;
		struct range r;
		long said;

		if (!EXPECT_EQ(ptp_steer(&c, ppm[i] * 65536), 0))
			return;
		EXPECT_EQ(ptp_steered(&c, &said), 0);
		EXPECT_EQ(said, ppm[i] * 65536);
		r = rate(&c);
		tap_note("  %+ld ppm: rate %.6f to %.6f", ppm[i], r.low,
			 r.high);
		EXPECT(r.low <= nominal.high * factor &&
			       r.high >= nominal.low * factor,
		       "%+ld ppm: %f to %f, not %f to %f", ppm[i], r.low,
		       r.high, nominal.low * factor, nominal.high * factor);
	}
}

/* Frequencies that the clock has not; the last make the kernel's own product
 * overflow. */
static void keeps_to_its_range(void)
{
	const long most = PRAWN_PTP_MAX_PPB / 1000 * 65536l;
	const long bad[] = { most + 1, most + 65536, -most - 65536,
			     LONG_MAX, LONG_MIN + 1, LONG_MAX / 125 * 2 + 200 };

	struct range r;

	EXPECT_EQ(ptp_steer(&c, 0), 0);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const int error = ptp_steer(&c, bad[i]);

		EXPECT(error == -ERANGE, "%ld: %s", bad[i],
		       error ? strerror(-error) : "taken");
	}
	r = rate(&c);
	EXPECT(r.low <= nominal.high && r.high >= nominal.low,
	       "steered all the same: %f to %f", r.low, r.high);
	EXPECT_EQ(ptp_steer(&c, most), 0);
	EXPECT_EQ(ptp_steer(&c, -most), 0);
	EXPECT_EQ(ptp_steer(&c, 0), 0);
}

static void refuses(unsigned long request, void *argument, int error)
{
	EXPECT(ioctl(c.fd, request, argument) == -1 && errno == error,
	       "request %#lx: %s, not %s", request, strerror(errno),
	       strerror(error));
}

static void bad_arguments(void)
{
	struct ptp_sys_offset_extended many = { .n_samples =
							PTP_MAX_SAMPLES + 1 };
	struct ptp_sys_offset_extended odd = { .n_samples = 1,
					       .rsv = { 0, 0, 1 } };
	struct ptp_sys_offset_precise precise = { 0 };
	struct ptp_extts_request extts = { .flags = PTP_ENABLE_FEATURE };
	struct ptp_perout_request out = { .period = { .sec = 1 } };
	struct ptp_pin_desc pin = { 0 };
	struct timespec t = { .tv_nsec = SECOND };
	struct timex late = { .modes = ADJ_SETOFFSET | ADJ_NANO };
	struct ptp_device reader;
	int64_t before, after;

	EXPECT_EQ(ptp_set(&c, 5 * SECOND), 0);
	refuses(PTP_SYS_OFFSET_EXTENDED, &many, EINVAL);
	refuses(PTP_SYS_OFFSET_EXTENDED, &odd, EINVAL);
	refuses(PTP_SYS_OFFSET_PRECISE, &precise, EOPNOTSUPP);
	refuses(PTP_EXTTS_REQUEST, &extts, EINVAL);
	refuses(PTP_PEROUT_REQUEST, &out, EINVAL);
	refuses(PTP_PIN_GETFUNC, &pin, EINVAL);
	refuses(PTP_ENABLE_PPS, (void *)1, EOPNOTSUPP);
	refuses(PTP_CLOCK_GETCAPS, (void *)1, EFAULT);
	refuses(_IO('=', 77), NULL, ENOTTY);
	EXPECT(clock_settime(c.id, &t) && errno == EINVAL, "%s",
	       strerror(errno));
	t = (struct timespec){ .tv_nsec = -1 };
	EXPECT(clock_settime(c.id, &t) && errno == EINVAL, "%s",
	       strerror(errno));
	late.time.tv_usec = SECOND;
	EXPECT(clock_adjtime(c.id, &late) < 0 && errno == EINVAL, "%s",
	       strerror(errno));
	if (EXPECT_EQ(open_clock(&reader, O_RDONLY), 0)) {
		EXPECT_EQ(ptp_read(&reader, &before), 0);
		EXPECT_EQ(ptp_set(&reader, 0), -EACCES);
		EXPECT_EQ(ptp_adjust(&reader, SECOND * 1000), -EACCES);
		EXPECT_EQ(ptp_read(&reader, &after), 0);
		EXPECT(after > before && after < 900 * SECOND,
		       "%" PRId64 " after %" PRId64, after, before);
		ptp_close(&reader);
	}
}

/* Reads until it fails; what it then says. */
static void *read_on(void *error)
{
	int64_t last = INT64_MIN, now;

	while (!(*(int *)error = ptp_read(&c, &now))) {
		if (now < last)
			FAIL("%" PRId64 " after %" PRId64, now, last);
		last = now;
	}
	return NULL;
}

static int unbind(void)
{
	return put("/sys/bus/pci/drivers/prawn/unbind", function);
}

static int bind(void)
{
	return put("/sys/bus/pci/drivers/prawn/bind", function);
}

static int reset(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", function);
	return put(path, "1");
}

static int load(const char *path)
{
	int fd = open(path, O_RDONLY);
	int error = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;

	close(fd);
	return error;
}

static int reload(void)
{
	return load("/lib/prawn/prawn.ko");
}

static int unload(void)
{
	return syscall(SYS_delete_module, "prawn", O_NONBLOCK) ? -errno : 0;
}

static int nothing(void)
{
	return 0;
}

/* Takes the card away by `take`, with the clock in use, and gives it back. */
static void around(int (*take_away)(void), int (*give_back)(void))
{
	const int64_t day = 86400 * SECOND;
	struct ptp_clock_caps caps;
	struct ptp_device old = c, again;
	pthread_t thread[READERS];
	int error[READERS] = { 0 };
	int64_t now;
	long said;

	EXPECT_EQ(ptp_set(&c, 1000 * day), 0);
	EXPECT_EQ(ptp_steer(&c, 65536), 0);
	for (int i = 0; i < READERS; i++)
		pthread_create(&thread[i], NULL, read_on, &error[i]);
	sleep_ms(50);
	EXPECT_EQ(take_away(), 0);
	for (int i = 0; i < READERS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(error[i], -ENODEV);
	}
	EXPECT_EQ(ptp_set(&old, 0), -ENODEV);
	EXPECT_EQ(ptp_adjust(&old, 1), -ENODEV);
	EXPECT_EQ(ptp_steer(&old, 0), -ENODEV);
	refuses(PTP_CLOCK_GETCAPS, &caps, ENODEV);

	EXPECT_EQ(give_back(), 0);
	EXPECT_EQ(ptp_read(&old, &now), -ENODEV);
	if (EXPECT_EQ(open_clock(&again, O_RDWR), 0)) {
		EXPECT(again.index != old.index, "both are ptp%u", old.index);
		EXPECT_EQ(ptp_read(&again, &now), 0);
		EXPECT(now >= 0 && now < day, "%" PRId64 " after a reset", now);
		EXPECT_EQ(ptp_steered(&again, &said), 0);
		EXPECT_EQ(said, 0);
		c = again;
	}
	ptp_close(&old);
}

static void unbound(void)
{
	around(unbind, bind);
}

static void reset_in_use(void)
{
	around(reset, nothing);
}

static void unloaded(void)
{
	around(unload, reload);
}

/* Built as for a kernel that has no PTP clocks. */
static void without_ptp(void)
{
	const struct prawn_command nop = { .opcode = PRAWN_OPCODE_NOP };
	struct ptp_device none;
	char path[128];
	struct raw r;

	EXPECT_EQ(unload(), 0);
	if (EXPECT_EQ(load("/tmp/prawn_no_ptp.ko"), 0)) {
		EXPECT_EQ(open_clock(&none, O_RDONLY), -ENXIO);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/ptp",
			 function);
		EXPECT(access(path, F_OK), "%s is there", path);
		raw_start(&r, 4);
		EXPECT(r.query.features & PRAWN_FEATURES_PTP_MASK, "features");
		EXPECT_EQ(raw_status(&r, &nop), PRAWN_STATUS_OK);
		raw_close(&r);
		EXPECT_EQ(unload(), 0);
	}
	EXPECT_EQ(reload(), 0);
	EXPECT_EQ(open_clock(&c, O_RDONLY), 0);
}

int main(void)
{
	if (geteuid())
		tap_bail("needs root");
	find_function();
	if (open_clock(&c, O_RDWR))
		tap_bail("the card has no clock");
	tap_run("it is where it says", is_there);
	tap_run("it keeps the system's time", keeps_time);
	tap_run("it is set", is_set);
	tap_run("it is adjusted by the step", is_adjusted);
	tap_run("it is steered", is_steered);
	tap_run("it is steered no further than it says", keeps_to_its_range);
	tap_run("bad arguments", bad_arguments);
	tap_run("unbind and bind in use", unbound);
	tap_run("reset in use", reset_in_use);
	tap_run("unload and load in use", unloaded);
	ptp_close(&c);
	tap_run("a kernel without PTP", without_ptp);
	return tap_end();
}
