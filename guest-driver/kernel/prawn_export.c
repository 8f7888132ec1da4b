// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports: receive buffers with a name. The card checks every packet against
 * its IPT entry (valid, key, range); the key is random and goes to importers
 * only. Names, permissions and the list of importers are kept here.
 */

#include <linux/cred.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "prawn.h"

#define WITHDRAW_MS 200
#define WITHDRAW_TRIES 25
#define WITHDRAWALS_MAX 8192

/* A WITHDRAW that its importer has not acknowledged. */
struct withdrawal {
	struct list_head link;
	u16 node, epoch;
	u32 export_id, import_id, transaction;
	unsigned int tries;
	unsigned long due; /* jiffies of the next try */
};

static u32 name_key(const char *name)
{
	return full_name_hash(NULL, name, strlen(name));
}

/* rdv_lock */
static struct prawn_xport *find_name(struct prawn_dev *pd, const char *name)
{
	struct prawn_xport *x;

	hash_for_each_possible(pd->names, x, name_link, name_key(name))
		if (!strcmp(x->name, name))
			return x;
	return NULL;
}

/* Name and id; nobody can import yet. */
static int reserve(struct prawn_xport *x)
{
	struct prawn_dev *pd = x->ctx->pd;
	int err;

	mutex_lock(&pd->rdv_lock);
	err = find_name(pd, x->name) ? -EEXIST :
				       prawn_quota(x->ctx, PRAWN_QUOTA_EXPORTS);
	if (!err)
		err = xa_alloc(&pd->exports, &x->id, x,
			       XA_LIMIT(0, pd->ipt_entries - 1), GFP_KERNEL);
	if (!err) {
		hash_add(pd->names, &x->name_link, name_key(x->name));
		x->ctx->held[PRAWN_QUOTA_EXPORTS]++;
	}
	mutex_unlock(&pd->rdv_lock);
	return err == -EBUSY ? -ENOSPC : err;
}

static int ipt_set(struct prawn_xport *x)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_IPT_SET,
		.context = cpu_to_le16(x->ctx->id),
		.index = cpu_to_le32(x->id),
		.a = cpu_to_le64(x->address),
		.b = cpu_to_le64(x->key),
		.c = cpu_to_le64(x->length),
		.d = cpu_to_le64(x->cookie),
		.e = cpu_to_le64(x->flags & PRAWN_EXPORT_NOTIFY ?
					 PRAWN_IPT_FLAG_NOTIFY :
					 0),
	};

	return prawn_admin(x->ctx->pd, &cmd);
}

/* Acknowledged when no DMA into the export is in flight. */
static void ipt_clear(struct prawn_xport *x)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_IPT_CLEAR,
		.context = cpu_to_le16(x->ctx->id),
		.index = cpu_to_le32(x->id),
	};

	if (prawn_admin(x->ctx->pd, &cmd))
		prawn_kill(x->ctx->pd, "export not withdrawn");
}

static unsigned long importer_key(u16 node, u32 import_id)
{
	return (unsigned long)node * PRAWN_OPT_ENTRIES + import_id;
}

/* rdv_lock */
static void importer_drop(struct prawn_dev *pd, struct prawn_importer *imp)
{
	xa_erase(&pd->importers, importer_key(imp->node, imp->import_id));
	list_del(&imp->link);
	kfree(imp);
}

/* rdv_lock. Each importer is told until it says that it knows. */
static void tell_importers(struct prawn_xport *x)
{
	struct prawn_dev *pd = x->ctx->pd;
	struct prawn_importer *imp, *next;

	list_for_each_entry_safe(imp, next, &x->importers, link) {
		struct withdrawal *w = NULL;

		if (pd->withdrawal_count < WITHDRAWALS_MAX)
			w = kmalloc(sizeof(*w), GFP_KERNEL);
		if (w) { /* without it the importer finds out by a NACK */
			*w = (struct withdrawal){
				.node = imp->node,
				.epoch = imp->epoch,
				.export_id = x->id,
				.import_id = imp->import_id,
				.transaction = imp->transaction,
				.due = jiffies,
			};
			list_add_tail(&w->link, &pd->withdrawals);
			pd->withdrawal_count++;
		}
		importer_drop(pd, imp);
	}
	if (!list_empty(&pd->withdrawals) && !pd->gone)
		mod_delayed_work(pd->wq, &pd->withdraw_work, 0);
}

static void hide(struct prawn_xport *x)
{
	struct prawn_dev *pd = x->ctx->pd;

	mutex_lock(&pd->rdv_lock);
	x->live = false;
	if (!hlist_unhashed(&x->name_link))
		hash_del(&x->name_link);
	mutex_unlock(&pd->rdv_lock);
}

/* No importer any more, the id is free, its memory goes. */
static void release(struct prawn_xport *x)
{
	struct prawn_dev *pd = x->ctx->pd;

	mutex_lock(&pd->rdv_lock);
	tell_importers(x);
	xa_erase(&pd->exports, x->id);
	x->ctx->held[PRAWN_QUOTA_EXPORTS]--;
	mutex_unlock(&pd->rdv_lock);
	mutex_lock(&x->ctx->table_lock);
	list_del(&x->link);
	mutex_unlock(&x->ctx->table_lock);
	prawn_event_drop(x->ctx, &x->event);
	kfree(x);
}

static int check(const struct prawn_ctx *ctx, const struct prawn_export *arg)
{
	if (arg->flags & ~PRAWN_EXPORT_NOTIFY || arg->rsvd ||
	    arg->access & ~(PRAWN_ACCESS_UID | PRAWN_ACCESS_GID) ||
	    !prawn_name_ok(arg->name))
		return -EINVAL;
	return prawn_range_check(arg->address, arg->length);
}

static struct prawn_xport *create(struct prawn_ctx *ctx,
				  const struct prawn_export *arg)
{
	struct prawn_xport *x = kzalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);

	if (!x)
		return NULL;
	x->ctx = ctx;
	x->address = arg->address;
	x->length = arg->length;
	x->cookie = arg->cookie;
	x->node_mask = arg->node_mask;
	x->access = arg->access;
	x->flags = arg->flags;
	x->uid = from_kuid(&init_user_ns, current_euid());
	x->gid = from_kgid(&init_user_ns, current_egid());
	do {
		x->key = get_random_u64();
	} while (!x->key);
	strscpy(x->name, arg->name, sizeof(x->name));
	INIT_HLIST_NODE(&x->name_link);
	INIT_LIST_HEAD(&x->importers);
	INIT_LIST_HEAD(&x->event.link);
	return x;
}

/* op_lock. Claims, IPT entry, publication; undone in reverse. */
int prawn_export(struct prawn_ctx *ctx, struct prawn_export *arg)
{
	struct prawn_xport *x;
	u64 done = 0;
	int err;

	err = check(ctx, arg);
	if (err)
		return err;
	x = create(ctx, arg);
	if (!x)
		return -ENOMEM;
	err = reserve(x);
	if (err) {
		kfree(x);
		return err;
	}
	mutex_lock(&ctx->table_lock);
	list_add_tail(&x->link, &ctx->exports);
	mutex_unlock(&ctx->table_lock);

	err = prawn_claim(ctx, x->address, x->length, true, true, &done);
	x->born = ctx->births;
	if (err)
		goto err_claim;
	err = ipt_set(x);
	if (err)
		goto err_claim;
	mutex_lock(&ctx->table_lock);
	err = x->lost ? -EFAULT : 0; /* from now on the work item looks after it */
	mutex_unlock(&ctx->table_lock);
	if (err)
		goto err_ipt;
	mutex_lock(&ctx->pd->rdv_lock);
	x->live = true;
	mutex_unlock(&ctx->pd->rdv_lock);
	arg->export_id = x->id;
	return 0;

err_ipt:
	ipt_clear(x);
err_claim:
	prawn_unclaim_export(ctx, x->address, done, x->born);
	hide(x);
	release(x);
	return err;
}

/* op_lock. Afterwards nothing arrives and the pages are not claimed. */
static void withdraw(struct prawn_xport *x)
{
	if (!x->live)
		return;
	hide(x);
	ipt_clear(x);
	mutex_lock(&x->ctx->pd->rdv_lock);
	tell_importers(x);
	mutex_unlock(&x->ctx->pd->rdv_lock);
	prawn_unclaim_export(x->ctx, x->address, x->length, x->born);
}

int prawn_unexport(struct prawn_ctx *ctx, u32 id)
{
	struct prawn_xport *x;

	list_for_each_entry(x, &ctx->exports, link) {
		if (x->id == id) {
			withdraw(x);
			release(x);
			return 0;
		}
	}
	return -ENOENT;
}

/* op_lock. Work item: those that lost a page to munmap or the like. */
void prawn_exports_withdraw_lost(struct prawn_ctx *ctx)
{
	struct prawn_xport *x;

	list_for_each_entry(x, &ctx->exports, link) {
		if (!READ_ONCE(x->lost) || !x->live)
			continue;
		withdraw(x);
		x->event.kind = PRAWN_EVENT_EXPORT_WITHDRAWN;
		x->event.id = x->id;
		x->event.cookie = x->cookie;
		prawn_event_queue(ctx, &x->event);
	}
}

/* Teardown, before the card disables the context. */
void prawn_exports_hide(struct prawn_ctx *ctx)
{
	struct prawn_xport *x;

	list_for_each_entry(x, &ctx->exports, link)
		hide(x);
}

/* Teardown, after that: the card has dropped the IPT entries. */
void prawn_exports_free(struct prawn_ctx *ctx)
{
	struct prawn_xport *x, *next;

	list_for_each_entry_safe(x, next, &ctx->exports, link)
		release(x);
}

static bool allowed(const struct prawn_xport *x, u16 node, u32 uid, u32 gid)
{
	if (!(x->node_mask & 1ull << node))
		return false;
	if (x->access == PRAWN_ACCESS_ANY)
		return true;
	return (x->access & PRAWN_ACCESS_UID && x->uid == uid) ||
	       (x->access & PRAWN_ACCESS_GID && x->gid == gid);
}

/*
 * rdv_lock. One entry for each number of the importer's, however often it asks
 * (an answer may get lost) and whatever else it had under that number (so may
 * its UNIMPORT): no node can make us remember more than it has numbers.
 */
static int remember(struct prawn_xport *x, u16 node, u16 epoch, u32 import_id,
		    u32 transaction)
{
	unsigned long key = importer_key(node, import_id);
	struct prawn_dev *pd = x->ctx->pd;
	struct prawn_importer *imp = xa_load(&pd->importers, key);

	if (imp) {
		list_move_tail(&imp->link, &x->importers);
	} else {
		imp = kmalloc(sizeof(*imp), GFP_KERNEL);
		if (!imp)
			return ENOMEM;
		if (xa_err(xa_store(&pd->importers, key, imp, GFP_KERNEL))) {
			kfree(imp);
			return ENOMEM;
		}
		list_add_tail(&imp->link, &x->importers);
	}
	imp->node = node;
	imp->epoch = epoch;
	imp->import_id = import_id;
	imp->transaction = transaction;
	return 0;
}

void prawn_export_request(struct prawn_dev *pd, u16 node, u16 epoch,
			  const struct prawn_mgmt_import_request *msg)
{
	struct prawn_mgmt_import_reply reply = {
		.header = {
			.type = PRAWN_MGMT_TYPE_IMPORT_REPLY,
			.version = 1,
			.transaction = msg->header.transaction,
			.import_id = msg->header.import_id,
		},
	};
	u32 import_id = le32_to_cpu(msg->header.import_id);
	const char *name = (const char *)msg->name;
	struct prawn_xport *x;
	int status = 0;

	mutex_lock(&pd->rdv_lock);
	x = prawn_name_ok(name) ? find_name(pd, name) : NULL;
	if (!prawn_name_ok(name) || import_id >= PRAWN_OPT_ENTRIES)
		status = EINVAL;
	else if (!x || !x->live)
		status = ENOENT;
	else if (!allowed(x, node, le32_to_cpu(msg->uid),
			  le32_to_cpu(msg->gid)))
		status = EACCES;
	else
		status = remember(x, node, epoch, import_id,
				  le32_to_cpu(msg->header.transaction));
	if (!status) {
		reply.header.export_id = cpu_to_le32(x->id);
		reply.key = cpu_to_le64(x->key);
		reply.length = cpu_to_le64(x->length);
		reply.flags = cpu_to_le32(x->flags & PRAWN_EXPORT_NOTIFY ?
						  PRAWN_IPT_FLAG_NOTIFY :
						  0);
	}
	mutex_unlock(&pd->rdv_lock);
	reply.header.status = cpu_to_le16(status);
	prawn_mgmt_send(pd, node, &reply, sizeof(reply));
}

/* UNIMPORT: forget the importer. */
void prawn_export_released(struct prawn_dev *pd, u16 node,
			   const struct prawn_mgmt_header *msg)
{
	u32 import_id = le32_to_cpu(msg->import_id);
	struct prawn_importer *imp = NULL;

	mutex_lock(&pd->rdv_lock);
	if (import_id < PRAWN_OPT_ENTRIES)
		imp = xa_load(&pd->importers, importer_key(node, import_id));
	if (imp && imp->transaction == le32_to_cpu(msg->transaction))
		importer_drop(pd, imp);
	mutex_unlock(&pd->rdv_lock);
}

static void forget(struct prawn_dev *pd, struct withdrawal *w)
{
	list_del(&w->link);
	kfree(w);
	pd->withdrawal_count--;
}

void prawn_export_acked(struct prawn_dev *pd, u16 node,
			const struct prawn_mgmt_header *msg)
{
	struct withdrawal *w, *next;

	mutex_lock(&pd->rdv_lock);
	list_for_each_entry_safe(w, next, &pd->withdrawals, link)
		if (w->node == node &&
		    w->import_id == le32_to_cpu(msg->import_id) &&
		    w->transaction == le32_to_cpu(msg->transaction))
			forget(pd, w);
	mutex_unlock(&pd->rdv_lock);
}

/* rdv_lock. Importers of an earlier life of a node are no more. */
void prawn_exports_peer(struct prawn_dev *pd, u16 node, u16 epoch, bool up)
{
	struct withdrawal *w, *wnext;
	struct prawn_importer *imp;
	unsigned long i;

	xa_for_each_range(&pd->importers, i, imp, importer_key(node, 0),
			  importer_key(node, PRAWN_OPT_ENTRIES - 1))
		if (!(up && imp->epoch == epoch))
			importer_drop(pd, imp);
	list_for_each_entry_safe(w, wnext, &pd->withdrawals, link)
		if (w->node == node && !(up && w->epoch == epoch))
			forget(pd, w);
}

void prawn_withdraw_work(struct work_struct *work)
{
	struct prawn_dev *pd = container_of(to_delayed_work(work),
					    struct prawn_dev, withdraw_work);
	unsigned long soon = jiffies + msecs_to_jiffies(WITHDRAW_MS);
	struct withdrawal *w, *next;

	mutex_lock(&pd->rdv_lock);
	list_for_each_entry_safe(w, next, &pd->withdrawals, link) {
		if (prawn_usable(pd))
			break;
		if (time_before(jiffies, w->due)) {
			if (time_before(w->due, soon))
				soon = w->due;
			continue;
		}
		w->due = jiffies + msecs_to_jiffies(WITHDRAW_MS);
		prawn_mgmt_simple(pd, w->node, PRAWN_MGMT_TYPE_WITHDRAW, 0,
				  w->transaction, w->export_id, w->import_id);
		if (++w->tries >= WITHDRAW_TRIES)
			forget(pd, w);
	}
	if (!list_empty(&pd->withdrawals) && !prawn_usable(pd))
		queue_delayed_work(pd->wq, &pd->withdraw_work,
				   time_before(jiffies, soon) ? soon - jiffies :
								0);
	mutex_unlock(&pd->rdv_lock);
}

/* Remove or reset: the card's BYE tells the importers instead. */
void prawn_withdrawals_drop(struct prawn_dev *pd)
{
	struct withdrawal *w, *next;

	cancel_delayed_work_sync(&pd->withdraw_work);
	mutex_lock(&pd->rdv_lock);
	list_for_each_entry_safe(w, next, &pd->withdrawals, link)
		forget(pd, w);
	mutex_unlock(&pd->rdv_lock);
}
