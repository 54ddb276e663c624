/** Checks of processors, memory and disk against the kernel's data, and of isolation and backups. */
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail } from './check.ts';
import { PERMILLE } from './check-policy.ts';

const KIB_PER_GIB = 1_048_576;

export const cpuTruth = defineCheck({
  id: 'cpu_truth',
  detects: 'an offer of more cores than exist',
  required: 'at most the number of cores that the kernel reports',
  category: 'policy',
  mode: 'shadow',
  judge({ inventory: { cpu, sources }, policy }) {
    const present = sources?.cpus_present ?? null;
    if (present === null) return unknown(`${cpu.cores}`);
    const measured = `${cpu.cores} offered, ${present} present`;
    if (cpu.cores <= present + policy.checks.cpu_margin) return ok(measured);
    return fail('CPU_OVERSTATED', measured, 'The host offers more cores than it has');
  },
  remedies: { CPU_OVERSTATED: 'Correct the number of cores that the host offers.' },
});

export const memTruth = defineCheck({
  id: 'mem_truth',
  detects: 'an offer of more memory than exists',
  required: 'at most the memory that the kernel and a pod report',
  category: 'policy',
  mode: 'shadow',
  judge({ inventory: { memory, sources }, measured: { rental }, policy }) {
    const margin = 1 + policy.checks.memory_margin_permille / PERMILLE;
    // A rental probe reserves nearly all memory and reports the memory that it finds inside the pod.
    const inside = rental?.memory ?? null;
    if (inside !== null && inside.given_kib > inside.seen_kib * margin) {
      const measured = `${inside.given_kib} KiB given, ${inside.seen_kib} KiB seen in a pod`;
      return fail('MEMORY_OVERSTATED', measured, 'A pod has less memory than its limit');
    }
    const present = sources?.memory_kib ?? null;
    if (present === null) {
      const offered = `${memory.total_kib} KiB`;
      return inside === null ? unknown(offered) : ok(offered);
    }
    const measured = `${memory.total_kib} KiB offered, ${present} KiB present`;
    if (memory.total_kib <= present * margin) return ok(measured);
    return fail('MEMORY_OVERSTATED', measured, 'The host offers more memory than it has');
  },
  remedies: { MEMORY_OVERSTATED: 'Correct the memory that the host offers.' },
});

export const diskFloor = defineCheck({
  id: 'disk_floor',
  detects: 'a full disk',
  required: 'at least `min_free_disk_gib` of the policy are free',
  category: 'env',
  judge({ inventory: { disk }, policy }) {
    const freeGib = Math.floor(disk.free_kib / KIB_PER_GIB);
    if (freeGib >= policy.checks.min_free_disk_gib) return ok(`${freeGib} GiB`);
    return fail('DISK_LOW', `${freeGib} GiB`, 'The disk of the pods has too little free space');
  },
  remedies: { DISK_LOW: 'Free space on the disk of Docker’s data.' },
});

export const diskHealth = defineCheck({
  id: 'disk_health',
  detects: 'a disk that is read-only, or smaller than reported',
  required: 'a writable disk whose reported size does not exceed its device',
  category: 'runtime',
  mode: 'observe',
  judge({ inventory: { disk, sources } }) {
    const { disk_writable: writable = null, disk_kib: device = null } = sources ?? {};
    if (writable === false) return fail('DISK_READONLY', disk.path, 'The disk cannot be written');
    const measured = `${disk.total_kib} KiB on a device of ${device ?? '?'} KiB`;
    if (device !== null && disk.total_kib > device) {
      const message = 'The reported disk is larger than its device';
      return fail('DISK_OVERSTATED', measured, message);
    }
    return writable === null ? unknown(measured) : ok(measured);
  },
  remedies: {
    DISK_READONLY: 'Repair the file system and mount it for writing.',
    DISK_OVERSTATED: 'Correct the disk that the host offers.',
  },
});

export const diskQuota = defineCheck({
  id: 'disk_quota',
  detects: 'pods that can fill the disk',
  required: 'disk limits of pods are enforced',
  category: 'runtime',
  mode: 'shadow',
  whileRented: true,
  judge({ inventory: { isolation } }) {
    if (isolation.disk_quota !== 'none') return ok(isolation.disk_quota);
    return fail('QUOTA_NOT_ENFORCED', 'none', 'Disk limits of pods are not enforced');
  },
  remedies: { QUOTA_NOT_ENFORCED: 'Read the log of the agent for why disks are not measured.' },
});

export const backupEngine = defineCheck({
  id: 'backup_engine',
  detects: 'a host that cannot make backups',
  required: 'restic is installed',
  category: 'env',
  mode: 'observe',
  whileRented: true,
  judge({ inventory: { sources } }) {
    const restic = sources?.restic;
    if (restic === undefined) return unknown('not reported');
    if (restic !== null) return ok(restic);
    return fail('BACKUP_ENGINE_MISSING', 'no restic', 'The host cannot back up');
  },
  remedies: { BACKUP_ENGINE_MISSING: 'Install restic (apt-get install restic).' },
});

export const firewall = defineCheck({
  id: 'firewall',
  detects: 'pods without network isolation',
  required: 'the agent’s firewall rules are in force',
  category: 'runtime',
  mode: 'shadow',
  whileRented: true,
  judge({ inventory: { isolation } }) {
    if (isolation.firewall === 'enforced') return ok('enforced');
    return fail('NETWORK_POLICY_DRIFT', isolation.firewall, 'No firewall isolates the pods');
  },
  remedies: {
    NETWORK_POLICY_DRIFT: 'Run the agent as root on a host with iptables, and restart it.',
  },
});
