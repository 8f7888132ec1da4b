// SPDX-License-Identifier: GPL-2.0-only
/*
 * Imports: asking another node's driver for an export by name, and the OPT
 * entry that makes it a destination. The card refuses commands of another
 * context; a withdrawn import has no OPT entry any more, one whose node went
 * away has one in error state.
 */

#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "prawn.h"

#define REPEAT_MS 200 /* without an answer */
#define SILENCE_MS 2000 /* the shortest that a node is given to answer */
#define PAUSE_MIN_MS 2 /* no such name yet: ask again, less and less often */
#define PAUSE_MAX_MS 50

static int opt_set(struct prawn_mport *m)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_OPT_SET,
		.context = cpu_to_le16(m->ctx->id),
		.index = cpu_to_le32(m->id),
		.a = cpu_to_le64(m->node | (u64)m->epoch << 16 |
				 (u64)m->export_id << 32),
		.b = cpu_to_le64(m->key),
		.c = cpu_to_le64(m->length),
		.d = cpu_to_le64(m->cookie),
	};

	return prawn_admin(m->ctx->pd, &cmd);
}

/* Acknowledged when no command uses it. */
static void opt_clear(struct prawn_mport *m)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_OPT_CLEAR,
		.context = cpu_to_le16(m->ctx->id),
		.index = cpu_to_le32(m->id),
	};

	if (m->on_card && prawn_admin(m->ctx->pd, &cmd))
		prawn_kill(m->ctx->pd, "import not cleared");
	m->on_card = false;
}

static struct prawn_mport *create(struct prawn_ctx *ctx,
				  const struct prawn_import *arg)
{
	struct prawn_dev *pd = ctx->pd;
	struct prawn_mport *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	int err;

	if (!m)
		return ERR_PTR(-ENOMEM);
	m->ctx = ctx;
	m->node = arg->node;
	m->cookie = arg->cookie;
	INIT_LIST_HEAD(&m->event.link);
	mutex_lock(&pd->rdv_lock);
	err = prawn_quota(ctx, PRAWN_QUOTA_IMPORTS);
	/* Late reuse: a command of an import that has gone names nothing. */
	if (!err)
		err = xa_alloc_cyclic(&pd->imports, &m->id, m,
				      XA_LIMIT(0, pd->opt_entries - 1),
				      &pd->next_import, GFP_KERNEL);
	if (err >= 0) {
		err = 0; /* 1: the numbers have wrapped */
		m->transaction = ++pd->transaction;
		list_add_tail(&m->link, &ctx->imports);
		ctx->held[PRAWN_QUOTA_IMPORTS]++;
	}
	mutex_unlock(&pd->rdv_lock);
	if (err) {
		kfree(m);
		return ERR_PTR(err == -EBUSY ? -ENOSPC : err);
	}
	return m;
}

/* rdv_lock. The exporter is told by the caller, after unlocking. */
static void destroy(struct prawn_mport *m)
{
	xa_erase(&m->ctx->pd->imports, m->id);
	m->ctx->held[PRAWN_QUOTA_IMPORTS]--;
	list_del(&m->link);
	prawn_event_drop(m->ctx, &m->event);
	kfree(m);
}

static int ask(struct prawn_mport *m, const struct prawn_import *arg)
{
	struct prawn_mgmt_import_request msg = {
		.header = {
			.type = PRAWN_MGMT_TYPE_IMPORT_REQUEST,
			.version = 1,
			.transaction = cpu_to_le32(m->transaction),
			.import_id = cpu_to_le32(m->id),
		},
		.uid = cpu_to_le32(from_kuid(&init_user_ns, current_euid())),
		.gid = cpu_to_le32(from_kgid(&init_user_ns, current_egid())),
	};
	struct prawn_dev *pd = m->ctx->pd;
	int err;

	memcpy(msg.name, arg->name, sizeof(msg.name));
	mutex_lock(&pd->rdv_lock);
	m->answered = false;
	mutex_unlock(&pd->rdv_lock);
	err = prawn_mgmt_send(pd, m->node, &msg, sizeof(msg));
	/* a node without driver may get one; a full queue gets empty */
	return err == -EHOSTDOWN || err == -EBUSY ? 0 : err;
}

/* 1: there is news; 0: time is up; or an error. */
static int sleep(struct prawn_mport *m, bool for_answer, unsigned int ms)
{
	struct prawn_dev *pd = m->ctx->pd;
	long left;

	left = wait_event_interruptible_timeout(
		pd->rdv_wait,
		prawn_usable(pd) || (for_answer && READ_ONCE(m->answered)),
		msecs_to_jiffies(ms));
	if (left < 0)
		return -EINTR;
	return prawn_usable(pd) ? prawn_usable(pd) : left > 0;
}

static int answer_of(const struct prawn_mport *m)
{
	switch (m->answer) {
	case 0:
		return 0;
	case ENOENT:
		return -ENOENT;
	case EACCES:
		return -EACCES;
	default:
		return -EPROTO;
	}
}

/* Until a good answer, a bad one, or the end of patience. */
static int rendezvous(struct prawn_mport *m, const struct prawn_import *arg)
{
	struct prawn_dev *pd = m->ctx->pd;
	unsigned long begin = jiffies;
	unsigned long wait = msecs_to_jiffies(arg->timeout_ms);
	unsigned long patience = max(wait, msecs_to_jiffies(SILENCE_MS));
	unsigned int pause = PAUSE_MIN_MS;
	int err;

	for (;;) {
		err = ask(m, arg);
		if (err)
			return err;
		err = sleep(m, true, REPEAT_MS);
		if (err < 0)
			return err;
		if (!err) {
			if (time_before(jiffies, begin + patience))
				continue;
			return READ_ONCE(pd->peer[m->node].down) ? -EHOSTDOWN :
								  -ETIMEDOUT;
		}
		err = answer_of(m);
		if (err != -ENOENT || !time_before(jiffies, begin + wait))
			return err;
		err = sleep(m, false, pause);
		if (err < 0)
			return err;
		pause = min(2 * pause, (unsigned int)PAUSE_MAX_MS);
	}
}

/*
 * The exporter may have withdrawn, or died, since it answered. The caller's
 * results are taken here: as soon as the lock is free, another thread of the
 * process may guess the number and unimport it.
 */
static int establish(struct prawn_mport *m, struct prawn_import *arg)
{
	struct prawn_dev *pd = m->ctx->pd;
	int err;

	mutex_lock(&pd->rdv_lock);
	if (m->invalid) {
		err = pd->peer[m->node].down ? -EHOSTDOWN : -ENOENT;
	} else {
		err = opt_set(m);
		m->on_card = !err;
		m->established = !err;
	}
	if (!err) {
		arg->length = m->length;
		arg->import_id = m->id;
		arg->export_flags = m->flags & PRAWN_IPT_FLAG_NOTIFY ?
					    PRAWN_EXPORT_NOTIFY :
					    0;
	}
	mutex_unlock(&pd->rdv_lock);
	return err;
}

static void say_unimport(struct prawn_dev *pd, u16 node, u32 transaction,
			 u32 export_id, u32 import_id)
{
	if (!prawn_usable(pd))
		prawn_mgmt_simple(pd, node, PRAWN_MGMT_TYPE_UNIMPORT, 0,
				  transaction, export_id, import_id);
}

static void give_up(struct prawn_mport *m)
{
	struct prawn_dev *pd = m->ctx->pd;
	struct prawn_mport copy;
	bool known;

	mutex_lock(&pd->rdv_lock);
	copy = *m;
	known = m->answered && !m->answer && !m->invalid;
	destroy(m);
	mutex_unlock(&pd->rdv_lock);
	if (known)
		say_unimport(pd, copy.node, copy.transaction, copy.export_id,
			     copy.id);
}

/* A node that we declared dead gets another chance. */
static int reconcile(struct prawn_dev *pd, u16 node)
{
	bool declared;

	mutex_lock(&pd->rdv_lock);
	declared = pd->peer[node].declared;
	pd->peer[node].declared = false;
	pd->peer[node].missed = 0;
	mutex_unlock(&pd->rdv_lock);
	return declared ? prawn_peer_control(pd, node, true) : 0;
}

int prawn_import(struct prawn_ctx *ctx, struct prawn_import *arg)
{
	struct prawn_dev *pd = ctx->pd;
	struct prawn_mport *m;
	int err;

	if (arg->flags || arg->rsvd || !prawn_name_ok(arg->name) ||
	    arg->node >= pd->nodes)
		return -EINVAL;
	err = reconcile(pd, arg->node);
	if (err)
		return err;
	m = create(ctx, arg);
	if (IS_ERR(m))
		return PTR_ERR(m);
	err = rendezvous(m, arg);
	if (!err)
		err = establish(m, arg);
	if (err)
		give_up(m);
	return err;
}

int prawn_unimport(struct prawn_ctx *ctx, u32 id)
{
	struct prawn_dev *pd = ctx->pd;
	struct prawn_mport *m, copy;

	mutex_lock(&pd->rdv_lock);
	m = xa_load(&pd->imports, id);
	if (!m || m->ctx != ctx || !m->established) {
		mutex_unlock(&pd->rdv_lock);
		return -ENOENT;
	}
	opt_clear(m);
	copy = *m;
	destroy(m);
	mutex_unlock(&pd->rdv_lock);
	if (!copy.invalid)
		say_unimport(pd, copy.node, copy.transaction, copy.export_id,
			     copy.id);
	return 0;
}

/* Teardown, after the card has disabled the context and dropped its entries. */
void prawn_imports_free(struct prawn_ctx *ctx)
{
	struct prawn_dev *pd = ctx->pd;
	struct prawn_mport *m, copy;

	for (;;) {
		mutex_lock(&pd->rdv_lock);
		m = list_first_entry_or_null(&ctx->imports, struct prawn_mport,
					     link);
		if (m) {
			copy = *m;
			destroy(m);
		}
		mutex_unlock(&pd->rdv_lock);
		if (!m)
			return;
		if (!copy.invalid)
			say_unimport(pd, copy.node, copy.transaction,
				     copy.export_id, copy.id);
	}
}

/* rdv_lock. The import that a message is about, if it says so consistently. */
static struct prawn_mport *find(struct prawn_dev *pd, u16 node,
				const struct prawn_mgmt_header *msg)
{
	struct prawn_mport *m = xa_load(&pd->imports,
					le32_to_cpu(msg->import_id));

	if (m && m->node == node &&
	    m->transaction == le32_to_cpu(msg->transaction))
		return m;
	return NULL;
}

void prawn_import_reply(struct prawn_dev *pd, u16 node, u16 epoch,
			const struct prawn_mgmt_import_reply *msg)
{
	u16 status = le16_to_cpu(msg->header.status);
	struct prawn_mport *m;
	bool stray = false;

	mutex_lock(&pd->rdv_lock);
	m = find(pd, node, &msg->header);
	if (!m) {
		stray = !status; /* we gave up meanwhile */
	} else if (!m->established && !m->invalid && !m->answered) {
		m->answer = status;
		m->export_id = le32_to_cpu(msg->header.export_id);
		m->epoch = epoch;
		m->key = le64_to_cpu(msg->key);
		m->length = le64_to_cpu(msg->length);
		m->flags = le32_to_cpu(msg->flags);
		WRITE_ONCE(m->answered, true);
	}
	mutex_unlock(&pd->rdv_lock);
	wake_up_all(&pd->rdv_wait);
	if (stray)
		say_unimport(pd, node, le32_to_cpu(msg->header.transaction),
			     le32_to_cpu(msg->header.export_id),
			     le32_to_cpu(msg->header.import_id));
}

/* rdv_lock. Tell the process, unless it is still inside IMPORT. */
static void invalidate(struct prawn_mport *m, u32 kind, u32 status)
{
	m->invalid = true;
	if (!m->established)
		return;
	m->event.kind = kind;
	m->event.id = m->id;
	m->event.cookie = m->cookie;
	m->event.status = status;
	prawn_event_queue(m->ctx, &m->event);
}

void prawn_import_withdrawn(struct prawn_dev *pd, u16 node,
			    const struct prawn_mgmt_header *msg)
{
	struct prawn_mport *m;

	mutex_lock(&pd->rdv_lock);
	m = find(pd, node, msg);
	if (m && !m->invalid && m->answered && !m->answer &&
	    m->export_id == le32_to_cpu(msg->export_id)) {
		opt_clear(m);
		invalidate(m, PRAWN_EVENT_IMPORT_WITHDRAWN,
			   PRAWN_STATUS_BAD_EXPORT);
	}
	mutex_unlock(&pd->rdv_lock);
	prawn_mgmt_simple(pd, node, PRAWN_MGMT_TYPE_WITHDRAW_ACK, 0,
			  le32_to_cpu(msg->transaction),
			  le32_to_cpu(msg->export_id),
			  le32_to_cpu(msg->import_id));
}

/* rdv_lock. The card has put the OPT entries into error state by itself. */
void prawn_imports_peer(struct prawn_dev *pd, u16 node, u16 epoch, bool up)
{
	struct prawn_mport *m;
	unsigned long i;

	xa_for_each(&pd->imports, i, m)
		if (m->node == node && m->answered && !m->answer &&
		    !m->invalid && !(up && m->epoch == epoch))
			invalidate(m, PRAWN_EVENT_IMPORT_PEER_DOWN,
				   PRAWN_STATUS_PEER_DEAD);
}

/* rdv_lock */
bool prawn_imports_from(struct prawn_dev *pd, u16 node)
{
	struct prawn_mport *m;
	unsigned long i;

	xa_for_each(&pd->imports, i, m)
		if (m->node == node && m->established && !m->invalid)
			return true;
	return false;
}
