/** Checks of the cards' state: healthy, unthrottled, responsive, and idle unless rented. */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail } from './check.ts';
import { PERMILLE } from './check-policy.ts';
import { withLoad } from './measured.ts';

export const gpuHealth = defineCheck({
  id: 'gpu_health',
  detects: 'a faulty card',
  required: 'cards without uncorrectable errors and without faults',
  category: 'runtime',
  whileRented: true,
  judge({ inventory: { gpu } }) {
    if (gpu.devices.length === 0) return unknown('no GPU');
    const first = gpu.devices.find(
      (device) => device.cordoned !== null || (device.ecc_errors ?? 0) > 0,
    );
    if (first === undefined) return ok(`${gpu.devices.length} sound`);
    const why = first.cordoned?.reason ?? `${first.ecc_errors} uncorrectable errors`;
    // A reset between two runs clears the fault.
    return { ...fail('GPU_UNHEALTHY', `${first.uuid}: ${why}`, 'A card is faulty'), inARow: 2 };
  },
  remedies: { GPU_UNHEALTHY: 'Reset or service the card.' },
});

export const powerLimit = defineCheck({
  id: 'power_limit',
  detects: 'a throttled card',
  required:
    'an enforced power limit of at least `min_power_permille` (policy) of the default limit; of the highest limit if the driver reports no default',
  category: 'env',
  mode: 'shadow',
  judge({ inventory: { gpu }, policy }) {
    const known = gpu.devices.flatMap((device) => {
      const { limit, usual } = powerLimitsOf(device);
      if (limit === null || usual === null || usual === 0) return [];
      return [{ uuid: device.uuid, limit, usual, permille: (limit / usual) * PERMILLE }];
    });
    if (known.length === 0) return unknown('not reported');
    const capped = known.find(({ permille }) => permille < policy.checks.min_power_permille);
    if (capped === undefined) return ok(`${known.length} cards`);
    const measured = `${capped.uuid}: ${capped.limit} W of ${capped.usual} W`;
    return fail('GPU_POWER_CAPPED', measured, 'A card is throttled by its power limit');
  },
  remedies: { GPU_POWER_CAPPED: 'Restore the limit: nvidia-smi -pl <default>.' },
});

/**
 * Returns the limit in force and the limit with which the former is compared. Driver 610 may report no default limit. An
 * agent of an older version does not report the enforced limit.
 */
function powerLimitsOf(device: GpuDevice) {
  const set = device.power_limit_w;
  const enforced = device.power_enforced_limit_w ?? set;
  const limit = set === null || enforced === null ? (enforced ?? set) : Math.min(set, enforced);
  return { limit, usual: device.power_default_limit_w ?? device.power_max_limit_w ?? set };
}

export const gpuWedge = defineCheck({
  id: 'gpu_wedge',
  detects: 'a card that hangs',
  required: 'every fully busy card runs a process or uses memory',
  category: 'runtime',
  mode: 'shadow',
  judge({ inventory, measured: { load }, policy }) {
    const { gpu } = withLoad(inventory, load);
    const { wedge_utilization_percent: busy, wedge_memory_permille: empty } = policy.checks;
    if (gpu.devices.every((device) => device.utilization_percent === null)) {
      return unknown('not reported');
    }
    const hung = gpu.devices.find(
      (device) =>
        (device.utilization_percent ?? 0) >= busy &&
        memoryPermille(device) <= empty &&
        device.processes === 0,
    );
    if (hung === undefined) return ok('none');
    const message = 'A card is fully busy but runs no process';
    const measured = `${hung.uuid}: ${hung.utilization_percent} %`;
    return { ...fail('GPU_WEDGED', measured, message), inARow: 2 };
  },
  remedies: { GPU_WEDGED: 'Drain the host, then reset the card or reboot.' },
});

export const gpuIdleUse = defineCheck({
  id: 'gpu_idle_use',
  detects: 'a card that other programs use while it is offered',
  required:
    'no process uses a card that no pod uses, above `idle_utilization_percent` or `idle_memory_permille` of the policy',
  category: 'policy',
  judge({ inventory, measured: { load }, executor, policy }) {
    if (executor.rented) return unknown('rented');
    const { gpu } = withLoad(inventory, load);
    const { idle_utilization_percent: busy, idle_memory_permille: full } = policy.checks;
    const free = gpu.devices.filter(
      (device) => device.leased_by === null && device.lease_state === 'free',
    );
    if (free.length === 0) return unknown('no free GPU');
    const used = free.find(
      (device) =>
        (device.processes ?? 0) > 0 &&
        ((device.utilization_percent ?? 0) >= busy || memoryPermille(device) > full),
    );
    if (used === undefined) return ok('idle');
    const { uuid, utilization_percent: percent, memory_used_mib: mib, processes } = used;
    const measured = `${uuid}: ${percent ?? '?'} %, ${mib ?? '?'} MiB, ${processes} processes`;
    const message = 'A GPU is in use although no pod has it';
    return { ...fail('GPU_BUSY_OUTSIDE_POD', measured, message), inARow: 2 };
  },
  remedies: { GPU_BUSY_OUTSIDE_POD: 'Stop the processes that nvidia-smi lists.' },
});

function memoryPermille({ memory_used_mib: used, memory_total_mib: total }: GpuDevice): number {
  return total === 0 ? 0 : ((used ?? 0) / total) * PERMILLE;
}
