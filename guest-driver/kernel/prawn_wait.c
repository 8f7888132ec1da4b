// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleeping: WAIT, eventfds, and the queue of software events.
 *
 * No wake-up is lost because the sleeper is on the wait queue before it looks
 * at the ring, and arms the card after that look with the index it looked at:
 * what comes before the arming interrupts at once. An interrupt disarms, and
 * serves every thread of the context, so each round arms again.
 */

#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/sched/signal.h>

#include "prawn.h"

static bool newer(u32 seq, u32 seen)
{
	return (s32)(seq - (seen + 1)) >= 0;
}

static u32 look(struct prawn_ctx *ctx, const struct prawn_wait *arg)
{
	const struct prawn_completion *done =
		ctx->ring[PRAWN_REGION_COMPLETION].cpu;
	const struct prawn_notification *note =
		ctx->ring[PRAWN_REGION_NOTIFICATION].cpu;
	u32 ready = 0, index;

	index = arg->completion_seen & ((1u << ctx->command_log2) - 1);
	if (newer(le32_to_cpu(READ_ONCE(done[index].seq)),
		  arg->completion_seen))
		ready |= PRAWN_WAIT_COMPLETION;
	index = arg->notification_seen & ((1u << ctx->notify_log2) - 1);
	if (newer(le32_to_cpu(READ_ONCE(note[index].seq)),
		  arg->notification_seen))
		ready |= PRAWN_WAIT_NOTIFICATION;
	if (READ_ONCE(ctx->event_count))
		ready |= PRAWN_WAIT_EVENT;
	return ready & arg->mask;
}

static void arm(struct prawn_ctx *ctx, const struct prawn_wait *arg)
{
	void __iomem *page = ctx->pd->bar2 + ctx->id * PRAWN_PAGE_SIZE;

	if (arg->mask & PRAWN_WAIT_COMPLETION)
		writeq(arg->completion_seen, page + PRAWN_DOORBELL_ARM_COMPLETION);
	if (arg->mask & PRAWN_WAIT_NOTIFICATION)
		writeq(arg->notification_seen, page + PRAWN_DOORBELL_ARM_NOTIFY);
}

int prawn_wait(struct prawn_ctx *ctx, struct prawn_wait *arg)
{
	bool forever = arg->timeout_ns == PRAWN_WAIT_FOREVER;
	ktime_t end = KTIME_MAX;
	DEFINE_WAIT(wait);
	int err;

	if (arg->flags || arg->rsvd || !arg->mask ||
	    arg->mask & ~(PRAWN_WAIT_COMPLETION | PRAWN_WAIT_NOTIFICATION |
			  PRAWN_WAIT_EVENT))
		return -EINVAL;
	if (!forever)
		end = ktime_add_safe(ktime_get(),
				     min_t(u64, arg->timeout_ns, KTIME_MAX));
	for (;;) {
		prepare_to_wait(&ctx->wait, &wait, TASK_INTERRUPTIBLE);
		err = 0;
		arg->ready = look(ctx, arg);
		if (arg->ready)
			break;
		err = prawn_usable(ctx->pd);
		if (!err && (READ_ONCE(ctx->error) || READ_ONCE(ctx->lost)))
			err = -EIO;
		if (err)
			break;
		err = -ETIMEDOUT;
		if (!arg->timeout_ns)
			break;
		err = -EINTR;
		if (signal_pending(current))
			break;
		arm(ctx, arg);
		err = -ETIMEDOUT;
		if (!schedule_hrtimeout(forever ? NULL : &end,
					HRTIMER_MODE_ABS)) {
			arg->ready = look(ctx, arg);
			if (arg->ready)
				err = 0;
			break;
		}
	}
	finish_wait(&ctx->wait, &wait);
	return err;
}

int prawn_eventfd(struct prawn_ctx *ctx, const struct prawn_eventfd *arg)
{
	struct eventfd_ctx *old[PRAWN_EFDS] = {};
	struct eventfd_ctx *efd[PRAWN_EFDS] = {};
	unsigned long flags;
	int i, err = 0;

	if (arg->flags || arg->rsvd || !arg->mask ||
	    arg->mask & ~((1u << PRAWN_EFDS) - 1) || arg->fd < -1)
		return -EINVAL;
	for (i = 0; arg->fd >= 0 && i < PRAWN_EFDS; i++) {
		if (!(arg->mask & (1u << i)))
			continue;
		efd[i] = eventfd_ctx_fdget(arg->fd);
		if (IS_ERR(efd[i])) {
			err = PTR_ERR(efd[i]);
			efd[i] = NULL;
			goto out;
		}
	}
	spin_lock_irqsave(&ctx->event_lock, flags);
	for (i = 0; i < PRAWN_EFDS; i++) {
		if (arg->mask & (1u << i)) {
			old[i] = ctx->efd[i];
			ctx->efd[i] = efd[i];
			efd[i] = NULL;
		}
	}
	spin_unlock_irqrestore(&ctx->event_lock, flags);
out:
	for (i = 0; i < PRAWN_EFDS; i++) {
		if (efd[i])
			eventfd_ctx_put(efd[i]);
		if (old[i])
			eventfd_ctx_put(old[i]);
	}
	return err;
}

/* Interrupt or software: wake all who sleep for this context. */
void prawn_ctx_kick(struct prawn_ctx *ctx)
{
	unsigned long flags;
	int i;

	spin_lock_irqsave(&ctx->event_lock, flags);
	for (i = 0; i < PRAWN_EFDS; i++)
		if (ctx->efd[i] &&
		    (i != PRAWN_EFD_EVENT || ctx->event_count))
			prawn_eventfd_signal(ctx->efd[i]);
	spin_unlock_irqrestore(&ctx->event_lock, flags);
	wake_up_all(&ctx->wait);
}

/* kind, id, status and cookie are filled in; an event is queued at most once. */
void prawn_event_queue(struct prawn_ctx *ctx, struct prawn_soft_event *event)
{
	unsigned long flags;

	spin_lock_irqsave(&ctx->event_lock, flags);
	if (list_empty(&event->link)) {
		list_add_tail(&event->link, &ctx->events);
		ctx->event_count++;
	}
	spin_unlock_irqrestore(&ctx->event_lock, flags);
	prawn_ctx_kick(ctx);
}

/* Its object goes away. */
void prawn_event_drop(struct prawn_ctx *ctx, struct prawn_soft_event *event)
{
	unsigned long flags;

	spin_lock_irqsave(&ctx->event_lock, flags);
	if (!list_empty(&event->link)) {
		list_del_init(&event->link);
		ctx->event_count--;
	}
	spin_unlock_irqrestore(&ctx->event_lock, flags);
}

int prawn_event_take(struct prawn_ctx *ctx, struct prawn_event *arg)
{
	struct prawn_soft_event *event;
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&ctx->event_lock, flags);
	event = list_first_entry_or_null(&ctx->events, struct prawn_soft_event,
					 link);
	if (event) {
		list_del_init(&event->link);
		ctx->event_count--;
		*arg = (struct prawn_event){
			.kind = event->kind,
			.id = event->id,
			.cookie = event->cookie,
			.status = event->status,
			.pending = ctx->event_count,
		};
	} else {
		err = -EAGAIN;
	}
	spin_unlock_irqrestore(&ctx->event_lock, flags);
	return err;
}
