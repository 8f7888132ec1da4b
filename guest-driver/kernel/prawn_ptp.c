// SPDX-License-Identifier: GPL-2.0-only
/*
 * The card's PTP hardware clock, /dev/ptpN.
 *
 * Locking: none of our own. Every operation is one access to one 64-bit
 * register, so that the card itself puts them in order: to set, to adjust and
 * to steer are writes that need no read before them. The PTP core holds a
 * semaphore around each operation that unregistering waits for; after
 * prawn_ptp_exit() none is under way and none begins, files that are open get
 * ENODEV, and the registers may go.
 *
 * What userland gets as cross time stamps (PTP_SYS_OFFSET_EXTENDED) is the
 * system's time before and after the one read. The instant that the answer is
 * of lies between them, where the card's end of the bus is. There is no
 * getcrosststamp: card and CPU share no counter (as PCIe PTM would give them),
 * so a single pair could only be guessed.
 */

#include <linux/err.h>
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/math64.h>
#include <linux/time64.h>

#include "prawn.h"

#define PRAWN_PTP_ONE (1ULL << PRAWN_PTP_FRACTION_BITS)
#define PRAWN_PTP_MAX_SCALED_PPM ((long)(PRAWN_PTP_MAX_PPB / 1000) << 16)

static struct prawn_dev *to_prawn(struct ptp_clock_info *info)
{
	return container_of(info, struct prawn_dev, ptp_info);
}

/* The read waits until the card has the write, or nobody has. */
static int set_register(struct prawn_dev *pd, u32 reg, u64 value)
{
	prawn_write64(pd, reg, value);
	return prawn_hw_vanished(pd) ? -ENODEV : 0;
}

/* Without interrupts, so that nothing but the bus comes between the stamps. */
static int ptp_gettimex(struct ptp_clock_info *info, struct timespec64 *ts,
			struct ptp_system_timestamp *sts)
{
	struct prawn_dev *pd = to_prawn(info);
	unsigned long flags;
	u64 ns;

	local_irq_save(flags);
	ptp_read_system_prets(sts);
	ns = prawn_read64(pd, PRAWN_BAR0_PTP_TIME);
	ptp_read_system_postts(sts);
	local_irq_restore(flags);
	/* all ones is also the nanosecond before zero */
	if (ns == ~0ULL && prawn_hw_vanished(pd))
		return -ENODEV;
	*ts = ns_to_timespec64(ns);
	return 0;
}

static int ptp_settime(struct ptp_clock_info *info, const struct timespec64 *ts)
{
	if (!timespec64_valid_strict(ts))
		return -EINVAL;
	return set_register(to_prawn(info), PRAWN_BAR0_PTP_TIME,
			    timespec64_to_ns(ts));
}

static int ptp_adjtime(struct ptp_clock_info *info, s64 delta)
{
	return set_register(to_prawn(info), PRAWN_BAR0_PTP_ADJUST, delta);
}

/*
 * 2^48 * (1 + scaled_ppm / (2^16 * 10^6)), rounded to the nearest. The PTP core
 * compares with max_adj, too, but its product overflows for large values.
 */
static int ptp_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	u64 part;
	u32 rest;

	if (scaled_ppm > PRAWN_PTP_MAX_SCALED_PPM ||
	    scaled_ppm < -PRAWN_PTP_MAX_SCALED_PPM)
		return -ERANGE;
	part = div_u64_rem(abs(scaled_ppm), 1000000, &rest) << 32;
	part += div_u64(((u64)rest << 32) + 500000, 1000000);
	return set_register(to_prawn(info), PRAWN_BAR0_PTP_INCREMENT,
			    scaled_ppm < 0 ? PRAWN_PTP_ONE - part
					   : PRAWN_PTP_ONE + part);
}

/* No alarms, time stamps of pins, periodic outputs, PPS. */
static int ptp_enable(struct ptp_clock_info *info,
		      struct ptp_clock_request *request, int on)
{
	return -EOPNOTSUPP;
}

static const struct ptp_clock_info ptp_template = {
	.owner = THIS_MODULE,
	.max_adj = PRAWN_PTP_MAX_PPB,
	.adjfine = ptp_adjfine,
	.adjtime = ptp_adjtime,
	.gettimex64 = ptp_gettimex,
	.settime64 = ptp_settime,
	.enable = ptp_enable,
};

/*
 * The clock as the reset has left it. A card without one, a kernel without PTP
 * and a failure are all the same to the rest: there is no clock.
 */
void prawn_ptp_init(struct prawn_dev *pd)
{
	struct ptp_clock *ptp;

	if (!(pd->features & PRAWN_FEATURES_PTP_MASK))
		return;
	pd->ptp_info = ptp_template;
	snprintf(pd->ptp_info.name, sizeof(pd->ptp_info.name), "%s",
		 dev_name(&pd->dev));
	ptp = ptp_clock_register(&pd->ptp_info, &pd->pdev->dev);
	if (IS_ERR(ptp)) {
		dev_warn(&pd->pdev->dev, "no PTP clock: error %ld\n",
			 PTR_ERR(ptp));
		return;
	}
	if (!ptp)
		return;
	pd->ptp = ptp;
	WRITE_ONCE(pd->ptp_index, ptp_clock_index(ptp));
}

void prawn_ptp_exit(struct prawn_dev *pd)
{
	WRITE_ONCE(pd->ptp_index, PRAWN_NO_PTP);
	if (pd->ptp)
		ptp_clock_unregister(pd->ptp);
	pd->ptp = NULL;
}
