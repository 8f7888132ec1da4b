// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between drivers, and what is known of the other nodes.
 *
 * A message may be refused by the receiving card (its event ring is full) or
 * meet a node without a driver; the card tells nobody. So whoever needs an
 * answer repeats the question, and every handler can take a message twice.
 * Messages come from other kernels: everything in them is checked, and none
 * can do more than make imports from its own sender useless.
 */

#include <linux/delay.h>
#include <linux/moduleparam.h>

#include "prawn.h"

#define BUSY_TRIES 8
#define PINGS_MISSED 6

static unsigned int ping_seconds = 10;
module_param(ping_seconds, uint, 0444);
MODULE_PARM_DESC(ping_seconds,
		 "seconds between pings of nodes that we import from (0: none); six unanswered make a node dead");

int prawn_mgmt_init(struct prawn_dev *pd)
{
	return prawn_ring_alloc(pd, &pd->mgmt, PAGE_SIZE);
}

void prawn_mgmt_exit(struct prawn_dev *pd)
{
	prawn_ring_free(pd, &pd->mgmt);
}

static int slot_try(struct prawn_dev *pd)
{
	int slot;

	for (slot = 0; slot < PRAWN_MGMT_SLOTS; slot++)
		if (!test_and_set_bit(slot, &pd->mgmt_busy))
			return slot;
	return READ_ONCE(pd->dead) ? -EIO : -EBUSY;
}

static void slot_put(struct prawn_dev *pd, int slot)
{
	clear_bit(slot, &pd->mgmt_busy);
	wake_up(&pd->mgmt_wait);
}

/* Sent means that the card has it. May sleep. */
int prawn_mgmt_send(struct prawn_dev *pd, u16 node, const void *msg, u32 bytes)
{
	struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_MGMT_SEND,
		.context = cpu_to_le16(PRAWN_KERNEL_CONTEXT),
		.index = cpu_to_le32(node),
		.b = cpu_to_le64(bytes),
	};
	unsigned int tries;
	int slot, err = 0;

	wait_event(pd->mgmt_wait, (slot = slot_try(pd)) != -EBUSY);
	if (slot < 0)
		return slot;
	memcpy(pd->mgmt.cpu + slot * PRAWN_MGMT_MAX, msg, bytes);
	cmd.a = cpu_to_le64(pd->mgmt.dma + slot * PRAWN_MGMT_MAX);
	for (tries = 0; tries < BUSY_TRIES; tries++) {
		err = prawn_admin(pd, &cmd);
		if (err != -EBUSY)
			break;
		usleep_range(500, 2000);
	}
	slot_put(pd, slot);
	return err;
}

/* A message that is a header alone; losing it is allowed. */
void prawn_mgmt_simple(struct prawn_dev *pd, u16 node, u8 type, u16 status,
		       u32 transaction, u32 export_id, u32 import_id)
{
	const struct prawn_mgmt_header msg = {
		.type = type,
		.version = 1,
		.status = cpu_to_le16(status),
		.transaction = cpu_to_le32(transaction),
		.export_id = cpu_to_le32(export_id),
		.import_id = cpu_to_le32(import_id),
	};

	prawn_mgmt_send(pd, node, &msg, sizeof(msg));
}

bool prawn_name_ok(const char *name)
{
	return name[0] && strnlen(name, PRAWN_NAME_SIZE) < PRAWN_NAME_SIZE;
}

static void heard_of(struct prawn_dev *pd, u16 node, u16 epoch)
{
	mutex_lock(&pd->rdv_lock);
	pd->peer[node].epoch = epoch;
	pd->peer[node].down = false;
	pd->peer[node].missed = 0;
	mutex_unlock(&pd->rdv_lock);
}

void prawn_mgmt_receive(struct prawn_dev *pd, u16 node, u16 epoch,
			const void *data, u32 bytes)
{
	const struct prawn_mgmt_header *msg = data;
	u32 want = sizeof(*msg);

	BUILD_BUG_ON(PRAWN_MGMT_NAME_SIZE != PRAWN_NAME_SIZE);
	if (node >= pd->nodes || bytes > PRAWN_MGMT_MAX ||
	    bytes < sizeof(*msg) || msg->version != 1)
		goto bad;
	if (msg->type == PRAWN_MGMT_TYPE_IMPORT_REQUEST)
		want = sizeof(struct prawn_mgmt_import_request);
	if (msg->type == PRAWN_MGMT_TYPE_IMPORT_REPLY)
		want = sizeof(struct prawn_mgmt_import_reply);
	if (bytes < want)
		goto bad;
	heard_of(pd, node, epoch);
	switch (msg->type) {
	case PRAWN_MGMT_TYPE_IMPORT_REQUEST:
		prawn_export_request(pd, node, epoch, data);
		return;
	case PRAWN_MGMT_TYPE_IMPORT_REPLY:
		prawn_import_reply(pd, node, epoch, data);
		return;
	case PRAWN_MGMT_TYPE_WITHDRAW:
		prawn_import_withdrawn(pd, node, msg);
		return;
	case PRAWN_MGMT_TYPE_WITHDRAW_ACK:
		prawn_export_acked(pd, node, msg);
		return;
	case PRAWN_MGMT_TYPE_UNIMPORT:
		prawn_export_released(pd, node, msg);
		return;
	case PRAWN_MGMT_TYPE_PING:
		prawn_mgmt_simple(pd, node, PRAWN_MGMT_TYPE_PONG, 0,
				  le32_to_cpu(msg->transaction), 0, 0);
		return;
	case PRAWN_MGMT_TYPE_PONG:
		return;
	}
bad:
	dev_warn_ratelimited(&pd->pdev->dev,
			     "bad message of %u bytes from node %u dropped\n",
			     bytes, node);
}

int prawn_peer_control(struct prawn_dev *pd, u16 node, bool welcome)
{
	const struct prawn_admin_command cmd = {
		.opcode = PRAWN_ADMIN_OPCODE_PEER_CONTROL,
		.context = cpu_to_le16(PRAWN_KERNEL_CONTEXT),
		.index = cpu_to_le32(node),
		.a = cpu_to_le64(welcome),
	};

	return prawn_admin(pd, &cmd);
}

/* The card has heard that a peer started a new life or ended one. */
void prawn_peer_changed(struct prawn_dev *pd, u16 node, u16 epoch, bool up)
{
	struct prawn_peer *peer;
	bool welcome;

	if (node >= pd->nodes || node == pd->node)
		return;
	peer = &pd->peer[node];
	mutex_lock(&pd->rdv_lock);
	welcome = up && peer->declared;
	peer->declared = peer->declared && !up;
	peer->down = !up;
	peer->missed = 0;
	if (up)
		peer->epoch = epoch;
	prawn_exports_peer(pd, node, epoch, up);
	prawn_imports_peer(pd, node, epoch, up);
	mutex_unlock(&pd->rdv_lock);
	if (welcome)
		prawn_peer_control(pd, node, true);
	wake_up_all(&pd->rdv_wait);
}

/* Six pings without a sound: its imports are of no use. */
static bool ping_one(struct prawn_dev *pd, u16 node)
{
	struct prawn_peer *peer = &pd->peer[node];
	bool dead = false, ask = false;

	mutex_lock(&pd->rdv_lock);
	if (!peer->down && prawn_imports_from(pd, node)) {
		dead = peer->missed++ >= PINGS_MISSED;
		ask = !dead;
	}
	if (dead) {
		peer->down = true;
		peer->declared = true;
		prawn_exports_peer(pd, node, 0, false);
		prawn_imports_peer(pd, node, 0, false);
	}
	mutex_unlock(&pd->rdv_lock);
	if (dead) {
		dev_warn(&pd->pdev->dev, "node %u does not answer\n", node);
		prawn_peer_control(pd, node, false);
	}
	return ask;
}

void prawn_ping_work(struct work_struct *work)
{
	struct prawn_dev *pd = container_of(to_delayed_work(work),
					    struct prawn_dev, ping_work);
	u16 node;

	for (node = 0; node < pd->nodes && !prawn_usable(pd); node++)
		if (node != pd->node && ping_one(pd, node))
			prawn_mgmt_simple(pd, node, PRAWN_MGMT_TYPE_PING, 0, 0,
					  0, 0);
	if (!prawn_usable(pd))
		prawn_ping_start(pd);
}

void prawn_ping_start(struct prawn_dev *pd)
{
	if (ping_seconds)
		schedule_delayed_work(&pd->ping_work, ping_seconds * HZ);
}
