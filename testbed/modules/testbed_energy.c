// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Energy counters of known power.
 *
 * Stands in for two drivers that need a real processor, under their own names and with
 * their own arithmetic, so that user space can't tell:
 *
 *   drivers/powercap/intel_rapl_common.c   the control type "intel-rapl": what is below
 *                                          /sys/class/powercap
 *   arch/x86/events/rapl.c                 the perf PMU "power": what is below
 *                                          /sys/bus/event_source/devices/power
 *
 * There are up to two packages, each with the domains core and dram. A domain's energy is the
 * integral of its power, which a parameter sets and which may be changed at any time:
 *
 *   echo 35000 > /sys/module/testbed_energy/parameters/package0_mw
 *
 * One milliwatt in one nanosecond is one picojoule, so the sum needs no fractions.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/powercap.h>
#include <linux/spinlock.h>
#include <linux/topology.h>

#define PACKAGES 2

enum kind { PACKAGE, CORE, DRAM, KINDS };

struct domain {
	u64 mw;
	u64 picojoules; /* up to `since` */
	u64 since;      /* ns */
	bool registered;
	char name[16];
	struct powercap_zone zone;
};

/* By package and kind; what the parameters below start from. */
static struct domain domains[PACKAGES][KINDS] = {
	{ { .mw = 20000 }, { .mw = 12000 }, { .mw = 3000 } },
	{ { .mw = 10000 }, { .mw = 6000 }, { .mw = 2000 } },
};

/* Raw, since perf reads its counters with interrupts off, inside the scheduler. */
static DEFINE_RAW_SPINLOCK(lock);

/* ---- The integral ------------------------------------------------------------------- */

/* Adds what was used since the last time. Called with the lock held. */
static u64 integrate(struct domain *domain)
{
	u64 now = ktime_get_ns();

	domain->picojoules += domain->mw * (now - domain->since);
	domain->since = now;
	return domain->picojoules;
}

static u64 picojoules(struct domain *domain)
{
	unsigned long flags;
	u64 sum;

	raw_spin_lock_irqsave(&lock, flags);
	sum = integrate(domain);
	raw_spin_unlock_irqrestore(&lock, flags);
	return sum;
}

/* ---- Parameters --------------------------------------------------------------------- */

/*
 * A parameter of an own kind (struct kernel_param_ops): the power up to now is added up
 * before the new one counts, so that the counter never jumps.
 */
static int set_power(const char *text, const struct kernel_param *param)
{
	struct domain *domain = param->arg;
	unsigned long flags;
	u64 mw;
	int error = kstrtou64(text, 0, &mw);

	if (error)
		return error;
	raw_spin_lock_irqsave(&lock, flags);
	integrate(domain);
	domain->mw = mw;
	raw_spin_unlock_irqrestore(&lock, flags);
	return 0;
}

static int show_power(char *buffer, const struct kernel_param *param)
{
	struct domain *domain = param->arg;

	return sysfs_emit(buffer, "%llu\n", domain->mw);
}

static const struct kernel_param_ops power_ops = {
	.set = set_power,
	.get = show_power,
};

module_param_cb(package0_mw, &power_ops, &domains[0][PACKAGE], 0644);
MODULE_PARM_DESC(package0_mw, "power of package 0 in mW");
module_param_cb(package0_core_mw, &power_ops, &domains[0][CORE], 0644);
MODULE_PARM_DESC(package0_core_mw, "power of package 0's cores in mW");
module_param_cb(package0_dram_mw, &power_ops, &domains[0][DRAM], 0644);
MODULE_PARM_DESC(package0_dram_mw, "power of package 0's memory in mW");
module_param_cb(package1_mw, &power_ops, &domains[1][PACKAGE], 0644);
MODULE_PARM_DESC(package1_mw, "power of package 1 in mW");
module_param_cb(package1_core_mw, &power_ops, &domains[1][CORE], 0644);
MODULE_PARM_DESC(package1_core_mw, "power of package 1's cores in mW");
module_param_cb(package1_dram_mw, &power_ops, &domains[1][DRAM], 0644);
MODULE_PARM_DESC(package1_dram_mw, "power of package 1's memory in mW");

/* Not to be changed later, as on a processor: readers ask for a zone's range only once. */
static unsigned int unit_nj = 61035;
module_param(unit_nj, uint, 0444);
MODULE_PARM_DESC(unit_nj, "energy unit in nJ: the counters wrap at 2^32 of it");

static int hidden_package = -1;
module_param(hidden_package, int, 0444);
MODULE_PARM_DESC(hidden_package, "a package without zones, as where firmware locks them");

/* ---- powercap ----------------------------------------------------------------------- */

/*
 * powercap_register_zone() makes a device of class "powercap" and fills its folder from the
 * functions given here: energy_uj and max_energy_range_uj from the zone's, and
 * constraint_0_* from the constraint's.
 */
static struct powercap_control_type *control_type;

static struct domain *domain_of(struct powercap_zone *zone)
{
	return container_of(zone, struct domain, zone);
}

/* The register has 32 bits and counts in the unit; the driver shows µJ, rounded down. */
static u64 units_to_uj(u64 units)
{
	return div_u64(units * unit_nj, 1000);
}

static int get_energy_uj(struct powercap_zone *zone, u64 *uj)
{
	u64 nanojoules = div_u64(picojoules(domain_of(zone)), 1000);

	*uj = units_to_uj(lower_32_bits(div_u64(nanojoules, unit_nj)));
	return 0;
}

static int get_max_energy_range_uj(struct powercap_zone *zone, u64 *uj)
{
	*uj = units_to_uj(U32_MAX);
	return 0;
}

/* The zone is a part of `domains`: there is nothing to free when its device goes. */
static int release_zone(struct powercap_zone *zone)
{
	return 0;
}

static const struct powercap_zone_ops zone_ops = {
	.get_energy_uj = get_energy_uj,
	.get_max_energy_range_uj = get_max_energy_range_uj,
	.release = release_zone,
};

/* A zone must have a constraint. These limit nothing. */
static int get_limit_uw(struct powercap_zone *zone, int id, u64 *uw)
{
	*uw = 65000000;
	return 0;
}

static int get_window_us(struct powercap_zone *zone, int id, u64 *us)
{
	*us = 1000000;
	return 0;
}

static int set_nothing(struct powercap_zone *zone, int id, u64 value)
{
	return -EACCES;
}

static const char *get_constraint_name(struct powercap_zone *zone, int id)
{
	return "long_term";
}

static const struct powercap_zone_constraint_ops constraint_ops = {
	.set_power_limit_uw = set_nothing,
	.get_power_limit_uw = get_limit_uw,
	.set_time_window_us = set_nothing,
	.get_time_window_us = get_window_us,
	.get_name = get_constraint_name,
};

/* Children first: a zone that has some must not go. */
static void unregister_zones(void)
{
	int package, kind;

	for (package = PACKAGES - 1; package >= 0; package--)
		for (kind = KINDS - 1; kind >= 0; kind--)
			if (domains[package][kind].registered)
				powercap_unregister_zone(control_type,
							 &domains[package][kind].zone);
	powercap_unregister_control_type(control_type);
}

static int register_zone(int package, int kind)
{
	static const char *const names[KINDS] = { "package-%d", "core", "dram" };
	struct domain *domain = &domains[package][kind];
	struct powercap_zone *parent = kind == PACKAGE ? NULL : &domains[package][PACKAGE].zone;
	struct powercap_zone *zone;

	snprintf(domain->name, sizeof(domain->name), names[kind], package);
	zone = powercap_register_zone(&domain->zone, control_type, domain->name, parent,
				      &zone_ops, 1, &constraint_ops);
	domain->registered = !IS_ERR(zone);
	return PTR_ERR_OR_ZERO(zone);
}

static int packages(void)
{
	return min(PACKAGES, (int)topology_max_packages());
}

static int register_zones(void)
{
	int package, kind, error;

	control_type = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (IS_ERR(control_type))
		return PTR_ERR(control_type);
	for (package = 0; package < packages(); package++) {
		for (kind = 0; kind < KINDS && package != hidden_package; kind++) {
			error = register_zone(package, kind);
			if (error) {
				unregister_zones();
				return error;
			}
		}
	}
	return 0;
}

/* ---- perf --------------------------------------------------------------------------- */

/*
 * An "uncore" PMU: its events belong to a package and not to a task, are opened on the CPUs
 * that `cpumask` lists, one of each package, and can't sample. Which domain an event counts
 * is in its `config`, as `format/event` says.
 *
 * Unlike the driver's, an event does not move to another CPU when its own goes offline.
 */
static struct pmu pmu;

static struct domain *domain_of_event(struct perf_event *event)
{
	/* As on Intel's processors: 1 cores, 2 package, 3 memory. */
	static const enum kind kinds[] = { KINDS, CORE, PACKAGE, DRAM };
	int package = topology_physical_package_id(event->cpu);
	u64 config = event->attr.config;

	if (package >= PACKAGES || config == 0 || config >= ARRAY_SIZE(kinds))
		return NULL;
	return &domains[package][kinds[config]];
}

/* perf counts energy in 2^-32 J, as the files events/energy-*.scale tell. */
static u64 perf_units(struct perf_event *event)
{
	return mul_u64_u64_div_u64(picojoules(domain_of_event(event)), 1ULL << 32,
				   1000000000000ULL);
}

static int event_init(struct perf_event *event)
{
	if (event->attr.type != pmu.type)
		return -ENOENT;
	if (event->cpu < 0 || is_sampling_event(event) || !domain_of_event(event))
		return -EINVAL;
	return 0;
}

static void event_read(struct perf_event *event)
{
	u64 now = perf_units(event);

	local64_add(now - local64_xchg(&event->hw.prev_count, now), &event->count);
}

static void event_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, perf_units(event));
	event->hw.state = 0;
}

static void event_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	event_read(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int event_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		event_start(event, flags);
	return 0;
}

/* One online CPU of each package. */
static ssize_t cpumask_show(struct device *device, struct device_attribute *attribute,
			    char *buffer)
{
	cpumask_var_t mask;
	unsigned long seen = 0;
	ssize_t length;
	int cpu;

	if (!zalloc_cpumask_var(&mask, GFP_KERNEL))
		return -ENOMEM;
	for_each_online_cpu(cpu)
		if (!test_and_set_bit(topology_physical_package_id(cpu), &seen))
			cpumask_set_cpu(cpu, mask);
	length = cpumap_print_to_pagebuf(true, buffer, mask);
	free_cpumask_var(mask);
	return length;
}

static DEVICE_ATTR_RO(cpumask);
PMU_FORMAT_ATTR(event, "config:0-7");
PMU_EVENT_ATTR_STRING(energy-cores, cores, "event=0x01");
PMU_EVENT_ATTR_STRING(energy-pkg, pkg, "event=0x02");
PMU_EVENT_ATTR_STRING(energy-ram, ram, "event=0x03");
PMU_EVENT_ATTR_STRING(energy-cores.unit, cores_unit, "Joules");
PMU_EVENT_ATTR_STRING(energy-pkg.unit, pkg_unit, "Joules");
PMU_EVENT_ATTR_STRING(energy-ram.unit, ram_unit, "Joules");
PMU_EVENT_ATTR_STRING(energy-cores.scale, cores_scale, "2.3283064365386962890625e-10");
PMU_EVENT_ATTR_STRING(energy-pkg.scale, pkg_scale, "2.3283064365386962890625e-10");
PMU_EVENT_ATTR_STRING(energy-ram.scale, ram_scale, "2.3283064365386962890625e-10");

static struct attribute *top_attributes[] = { &dev_attr_cpumask.attr, NULL };
static struct attribute *format_attributes[] = { &format_attr_event.attr, NULL };
static struct attribute *event_attributes[] = {
	&cores.attr.attr, &cores_unit.attr.attr, &cores_scale.attr.attr,
	&pkg.attr.attr,   &pkg_unit.attr.attr,   &pkg_scale.attr.attr,
	&ram.attr.attr,   &ram_unit.attr.attr,   &ram_scale.attr.attr,
	NULL,
};

static const struct attribute_group top_group = { .attrs = top_attributes };
static const struct attribute_group format_group = {
	.name = "format",
	.attrs = format_attributes,
};
static const struct attribute_group event_group = {
	.name = "events",
	.attrs = event_attributes,
};
static const struct attribute_group *groups[] = { &top_group, &format_group, &event_group, NULL };

static struct pmu pmu = {
	.module = THIS_MODULE, /* open events keep this module loaded */
	.task_ctx_nr = perf_invalid_context,
	.capabilities = PERF_PMU_CAP_NO_EXCLUDE,
	.attr_groups = groups,
	.event_init = event_init,
	.add = event_add,
	.del = event_stop,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
};

/* ---- The module --------------------------------------------------------------------- */

static int __init testbed_energy_init(void)
{
	u64 now = ktime_get_ns();
	int package, kind, error;

	if (unit_nj == 0)
		return -EINVAL;
	/* Parameters were set before this: whatever they added up is not of this time. */
	for (package = 0; package < PACKAGES; package++) {
		for (kind = 0; kind < KINDS; kind++) {
			domains[package][kind].picojoules = 0;
			domains[package][kind].since = now;
		}
	}
	error = register_zones();
	if (error)
		return error;
	error = perf_pmu_register(&pmu, "power", -1);
	if (error)
		unregister_zones();
	return error;
}

static void __exit testbed_energy_exit(void)
{
	perf_pmu_unregister(&pmu);
	unregister_zones();
}

module_init(testbed_energy_init);
module_exit(testbed_energy_exit);
MODULE_DESCRIPTION("Energy counters of known power, for tests");
MODULE_LICENSE("Dual MIT/GPL");
