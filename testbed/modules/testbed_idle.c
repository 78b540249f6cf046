// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Idle states where the processor offers none.
 *
 * Stands in for drivers/idle/intel_idle.c and drivers/acpi/processor_idle.c: a struct
 * cpuidle_driver with a table of states. The kernel's governors (menu, ladder) choose among
 * them by latency and residency, and drivers/cpuidle counts what was chosen, all for real:
 * what is below /sys/devices/system/cpu/cpu*\/cpuidle. Only the depth is made up, since each
 * state but the first halts the CPU in the same way.
 */
#include <linux/cpuidle.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/sched/idle.h>

/* Called and left with interrupts off; a halted CPU wakes only with them on. */
static int enter_halt(struct cpuidle_device *device, struct cpuidle_driver *driver, int index)
{
	/*
	 * Who wakes a polling CPU only sets a flag. This one is about to sleep and wants an
	 * interrupt, unless the flag is there already. The idle loop puts the mark back.
	 */
	if (!current_clr_polling_and_test()) {
		raw_safe_halt();
		raw_local_irq_disable();
	}
	return index;
}

/*
 * Latencies and residencies (µs) like a Skylake server's in intel_idle.
 *
 * There is no .owner: cpuidle would hold this module for each CPU's device, and it could never
 * be unloaded. That is safe, since cpuidle_unregister() waits until no CPU is in a state.
 */
static struct cpuidle_driver driver = {
	.name = "testbed_idle",
	.state_count = 4,
	.states = {
		{ }, /* POLL, filled in by the kernel */
		{
			.name = "C1",
			.desc = "a halt called C1",
			.exit_latency = 2,
			.target_residency = 2,
			.enter = enter_halt,
		},
		{
			.name = "C1E",
			.desc = "a halt called C1E",
			.exit_latency = 10,
			.target_residency = 20,
			.enter = enter_halt,
		},
		{
			.name = "C6",
			.desc = "a halt called C6",
			.exit_latency = 133,
			.target_residency = 600,
			.enter = enter_halt,
		},
	},
};

static int __init testbed_idle_init(void)
{
	cpuidle_poll_state_init(&driver);
	return cpuidle_register(&driver, NULL);
}

static void __exit testbed_idle_exit(void)
{
	cpuidle_unregister(&driver);
}

module_init(testbed_idle_init);
module_exit(testbed_idle_exit);
MODULE_DESCRIPTION("Idle states that all halt, for tests");
MODULE_LICENSE("Dual MIT/GPL");
