// SPDX-License-Identifier: Apache-2.0
#include "ptp_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/timex.h>
#include <unistd.h>

#include "hostile_raw.h"

static const int64_t SECOND = 1000000000;

int ptp_open(struct ptp_device *clock, const char *card, int flags)
{
	char path[32];
	struct raw r;
	int error = raw_open_at(&r, card);

	clock->fd = -1;
	clock->index = PRAWN_NO_PTP;
	if (r.fd >= 0)
		close(r.fd);
	if (error)
		return error;
	clock->index = r.query.ptp_index;
	if (clock->index == PRAWN_NO_PTP)
		return -ENXIO;
	snprintf(path, sizeof(path), "/dev/ptp%u", clock->index);
	clock->fd = open(path, flags | O_CLOEXEC);
	if (clock->fd < 0)
		return -errno;
	/* the kernel's FD_TO_CLOCKID() */
	clock->id = (clockid_t)(~(unsigned)clock->fd << 3 | 3);
	return 0;
}

void ptp_close(struct ptp_device *clock)
{
	if (clock->fd >= 0)
		close(clock->fd);
	clock->fd = -1;
}

int ptp_read(const struct ptp_device *clock, int64_t *ns)
{
	struct timespec t;

	if (clock_gettime(clock->id, &t))
		return -errno;
	*ns = t.tv_sec * SECOND + t.tv_nsec;
	return 0;
}

int ptp_set(const struct ptp_device *clock, int64_t ns)
{
	const struct timespec t = { .tv_sec = ns / SECOND,
				    .tv_nsec = ns % SECOND };

	return clock_settime(clock->id, &t) ? -errno : 0;
}

int ptp_adjust(const struct ptp_device *clock, int64_t ns)
{
	struct timex t = { .modes = ADJ_SETOFFSET | ADJ_NANO };

	/* what is below a second counts upwards, always */
	t.time.tv_sec = ns / SECOND - (ns % SECOND < 0);
	t.time.tv_usec = ns - t.time.tv_sec * SECOND;
	return clock_adjtime(clock->id, &t) < 0 ? -errno : 0;
}

int ptp_steer(const struct ptp_device *clock, long scaled_ppm)
{
	struct timex t = { .modes = ADJ_FREQUENCY, .freq = scaled_ppm };

	return clock_adjtime(clock->id, &t) < 0 ? -errno : 0;
}

int ptp_steered(const struct ptp_device *clock, long *scaled_ppm)
{
	struct timex t = { 0 };

	if (clock_adjtime(clock->id, &t) < 0)
		return -errno;
	*scaled_ppm = t.freq;
	return 0;
}
