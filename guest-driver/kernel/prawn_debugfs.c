// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/prawn/prawnN/: what the card counts and what the driver
 * holds. One fact a line, "name value", for people and for scripts.
 */

#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "prawn.h"

static struct dentry *root;

static int state_show(struct seq_file *s, void *unused)
{
	struct prawn_dev *pd = s->private;

	seq_printf(s, "dead %d\n", pd->dead);
	seq_printf(s, "node %u\n", pd->node);
	seq_printf(s, "nodes %u\n", pd->nodes);
	seq_printf(s, "epoch %u\n", pd->epoch);
	seq_printf(s, "features %#llx\n", pd->features);
	seq_printf(s, "status %#x\n", prawn_read32(pd, PRAWN_BAR0_STATUS));
	seq_printf(s, "vectors %u\n", pd->vectors);
	seq_printf(s, "msix %d\n", pd->msix);
	seq_printf(s, "ptp %d\n", (int)READ_ONCE(pd->ptp_index));
	seq_printf(s, "admin_commands %lld\n",
		   atomic64_read(&pd->admin.commands));
	seq_printf(s, "admin_slept %lld\n", atomic64_read(&pd->admin.slept));
	seq_printf(s, "reclaimable_pages %ld\n",
		   atomic_long_read(&pd->reclaimable));
	seq_printf(s, "withdrawals %u\n", pd->withdrawal_count);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static void show_counters(struct seq_file *s, struct prawn_dev *pd, int context)
{
	char name[PRAWN_COUNTER_NAME_SIZE];
	u64 value;
	u32 i;

	for (i = 0; !prawn_counter_read(pd, context, i, &value, name); i++) {
		if (context >= 0)
			seq_printf(s, "context%d.", context);
		seq_printf(s, "%s %llu\n", name, value);
	}
}

static int counters_show(struct seq_file *s, void *unused)
{
	show_counters(s, s->private, -1);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int context_counters_show(struct seq_file *s, void *unused)
{
	struct prawn_dev *pd = s->private;
	int id;

	for (id = 0; id < pd->contexts; id++)
		if (READ_ONCE(pd->by_id[id]))
			show_counters(s, pd, id);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(context_counters);

static void show_chunks(struct seq_file *s, struct prawn_ctx *ctx)
{
	struct prawn_chunk *chunk;

	mutex_lock(&ctx->table_lock);
	list_for_each_entry(chunk, &ctx->lru, lru)
		if (chunk->live || chunk->zapped)
			seq_printf(s,
				   "context%u.chunk %#lx live %u zapped %u suspect %u\n",
				   ctx->id, chunk->start, chunk->live,
				   chunk->zapped, chunk->verify);
	mutex_unlock(&ctx->table_lock);
}

/* Files that are open, and what each has pinned. */
static int contexts_show(struct seq_file *s, void *unused)
{
	struct prawn_dev *pd = s->private;
	struct prawn_ctx *ctx;

	mutex_lock(&pd->file_lock);
	list_for_each_entry(ctx, &pd->files, link) {
		if (!READ_ONCE(ctx->up)) {
			seq_puts(s, "file without context\n");
			continue;
		}
		seq_printf(s,
			   "context%u vector %u command_log2 %u notify_log2 %u error %u pinned_pages %lu zaps %llu verified %llu retries %llu\n",
			   ctx->id, ctx->vector, ctx->command_log2,
			   ctx->notify_log2, ctx->error, ctx->pinned, ctx->zaps,
			   ctx->verified, ctx->retries);
		show_chunks(s, ctx);
	}
	mutex_unlock(&pd->file_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(contexts);

static unsigned int importers(const struct prawn_xport *x)
{
	struct list_head *at;
	unsigned int n = 0;

	list_for_each(at, &x->importers)
		n++;
	return n;
}

/* Keys and addresses are nobody's business. */
static int rendezvous_show(struct seq_file *s, void *unused)
{
	struct prawn_dev *pd = s->private;
	struct prawn_xport *x;
	struct prawn_mport *m;
	unsigned long i;

	mutex_lock(&pd->rdv_lock);
	xa_for_each(&pd->exports, i, x)
		seq_printf(s, "export %lu context %u live %d length %llu importers %u name %s\n",
			   i, x->ctx->id, x->live, x->length,
			   importers(x), x->name);
	xa_for_each(&pd->imports, i, m)
		seq_printf(s, "import %lu context %u node %u epoch %u valid %d length %llu\n",
			   i, m->ctx->id, m->node, m->epoch,
			   m->established && !m->invalid, m->length);
	for (i = 0; i < pd->nodes; i++)
		seq_printf(s, "peer %lu epoch %u down %d missed %u\n", i,
			   pd->peer[i].epoch, pd->peer[i].down,
			   pd->peer[i].missed);
	mutex_unlock(&pd->rdv_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rendezvous);

void prawn_debugfs_add(struct prawn_dev *pd)
{
	struct dentry *dir = debugfs_create_dir(dev_name(&pd->dev), root);

	pd->debugfs = dir;
	debugfs_create_file("state", 0400, dir, pd, &state_fops);
	debugfs_create_file("counters", 0400, dir, pd, &counters_fops);
	debugfs_create_file("context_counters", 0400, dir, pd,
			    &context_counters_fops);
	debugfs_create_file("contexts", 0400, dir, pd, &contexts_fops);
	debugfs_create_file("rendezvous", 0400, dir, pd, &rendezvous_fops);
}

void prawn_debugfs_remove(struct prawn_dev *pd)
{
	debugfs_remove_recursive(pd->debugfs);
}

void prawn_debugfs_init(void)
{
	root = debugfs_create_dir("prawn", NULL);
}

void prawn_debugfs_exit(void)
{
	debugfs_remove_recursive(root);
}
