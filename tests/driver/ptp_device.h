/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PTP hardware clock as userland has it: a file whose descriptor is a clock.
 * Functions return 0 or -errno.
 */
#ifndef PRAWN_DRIVER_PTP_DEVICE_H
#define PRAWN_DRIVER_PTP_DEVICE_H

#include <stdint.h>
#include <time.h>

struct ptp_device {
	unsigned index; /* N of /dev/ptpN */
	int fd;
	clockid_t id;
};

/* The clock of a card, /dev/prawnN; -ENXIO: it has none. */
int ptp_open(struct ptp_device *clock, const char *card, int flags);
void ptp_close(struct ptp_device *clock);

int ptp_read(const struct ptp_device *clock, int64_t *ns);
int ptp_set(const struct ptp_device *clock, int64_t ns); /* not below 0 */
int ptp_adjust(const struct ptp_device *clock, int64_t ns);

/* In parts per million, with 16 bits of fraction. */
int ptp_steer(const struct ptp_device *clock, long scaled_ppm);
int ptp_steered(const struct ptp_device *clock, long *scaled_ppm);

#endif
