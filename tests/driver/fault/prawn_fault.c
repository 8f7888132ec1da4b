// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests of prawn.ko: lets calls fail that it makes. Debian's kernels have
 * kprobes, but no fault injection.
 *
 * Of the calls of `function` that prawn.ko makes on behalf of the process that
 * loaded this module, number `nth` (and with `on`, all after it) does not
 * happen and returns `value`; 0: none. `seen` counts them. All but the function
 * can be written at any time.
 */

#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

static char *function;
module_param(function, charp, 0444);
static unsigned int nth;
module_param(nth, uint, 0644);
static bool on;
module_param(on, bool, 0444);
static long value;
module_param(value, long, 0444);
static unsigned int seen;
module_param(seen, uint, 0644);

static pid_t who;

static bool from_prawn(unsigned long address)
{
	static char text[KSYM_SYMBOL_LEN]; /* one process at a time */

	sprint_symbol(text, address);
	return strstr(text, "[prawn]");
}

static noinline long instead(void)
{
	return value;
}

/* At the first instruction: the return address lies on top of the stack. */
static int entered(struct kprobe *probe, struct pt_regs *regs)
{
	if (current->tgid != who || !from_prawn(*(unsigned long *)regs->sp))
		return 0;
	seen++;
	if (!nth || (seen != nth && !(on && seen > nth)))
		return 0;
	regs->ip = (unsigned long)instead;
	return 1;
}
NOKPROBE_SYMBOL(entered);

static struct kprobe probe = { .pre_handler = entered };

static int __init fault_init(void)
{
	who = current->tgid;
	probe.symbol_name = function;
	return function ? register_kprobe(&probe) : -EINVAL;
}

static void __exit fault_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(fault_init);
module_exit(fault_exit);
MODULE_DESCRIPTION("Lets calls of prawn.ko fail, for its tests");
MODULE_LICENSE("GPL");
