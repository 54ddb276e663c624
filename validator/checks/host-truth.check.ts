/** Processor, memory and disk are as the kernel tells them elsewhere, and the disk has room. */
import { failed, type Judge, passed, unknown } from './check.ts';
import { ONE_THOUSAND } from './check-policy.ts';

const KIB_PER_GIB = 1_048_576;

export const judgeCpu: Judge = ({ inventory: { cpu, sources }, policy }) => {
  const present = sources?.cpus_present ?? null;
  if (present === null) return unknown(`${cpu.cores}`);
  const measured = `${cpu.cores} offered, ${present} present`;
  if (cpu.cores <= present + policy.checks.cpu_margin) return passed(measured);
  return failed('CPU_OVERSTATED', measured, 'The host offers more cores than it has');
};

/** Against the kernel's own tables, and against what a pod saw that was given nearly all of it. */
export const judgeMemory: Judge = ({ inventory: { memory, sources }, measured, policy }) => {
  const margin = 1 + policy.checks.memory_margin_permille / ONE_THOUSAND;
  const inside = measured.rental?.memory ?? null;
  if (inside !== null && inside.given_kib > inside.seen_kib * margin) {
    const words = `${inside.given_kib} KiB given, ${inside.seen_kib} KiB seen in a pod`;
    return failed('MEMORY_OVERSTATED', words, 'A pod was given more memory than there is');
  }
  const present = sources?.memory_kib ?? null;
  if (present === null) {
    const offered = `${memory.total_kib} KiB`;
    return inside === null ? unknown(offered) : passed(offered);
  }
  const words = `${memory.total_kib} KiB offered, ${present} KiB present`;
  if (memory.total_kib <= present * margin) return passed(words);
  return failed('MEMORY_OVERSTATED', words, 'The host offers more memory than it has');
};

export const judgeDiskFloor: Judge = ({ inventory: { disk }, policy }) => {
  const freeGib = Math.floor(disk.free_kib / KIB_PER_GIB);
  if (freeGib >= policy.checks.min_free_disk_gib) return passed(`${freeGib} GiB`);
  return failed('DISK_LOW', `${freeGib} GiB`, 'The disk of the pods is nearly full');
};

export const judgeDiskHealth: Judge = ({ inventory: { disk, sources } }) => {
  const { disk_writable: writable = null, disk_kib: device = null } = sources ?? {};
  if (writable === false) return failed('DISK_READONLY', disk.path, 'The disk cannot be written');
  const measured = `${disk.total_kib} KiB on a device of ${device ?? '?'} KiB`;
  if (device !== null && disk.total_kib > device) {
    return failed('DISK_OVERSTATED', measured, 'The disk is said to be larger than its device');
  }
  return writable === null ? unknown(measured) : passed(measured);
};
