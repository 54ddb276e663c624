/** How the cards are: sound, unthrottled, awake, and not at work for somebody else. */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import { failed, type Judge, passed, unknown } from './check.ts';
import { ONE_THOUSAND } from './check-policy.ts';
import { withLoad } from './load.ts';

/** A reset between two looks has mended it. */
const ILL_IN_A_ROW = 2;

export const judgeGpuHealth: Judge = ({ inventory: { gpu } }) => {
  if (gpu.devices.length === 0) return unknown('no GPU');
  const ill = gpu.devices.filter(
    (device) => device.cordoned !== null || (device.ecc_errors ?? 0) > 0,
  );
  const [first] = ill;
  if (first === undefined) return passed(`${gpu.devices.length} sound`);
  const why = first.cordoned?.reason ?? `${first.ecc_errors} uncorrectable errors`;
  const failure = failed('GPU_UNHEALTHY', `${first.uuid}: ${why}`, 'A card is not sound');
  return { ...failure, inARow: ILL_IN_A_ROW };
};

export const judgePowerLimit: Judge = ({ inventory: { gpu }, policy }) => {
  const known = gpu.devices.flatMap(
    ({ uuid, power_limit_w: limit, power_default_limit_w: usual }) =>
      limit === null || usual === null || usual === 0
        ? []
        : [{ uuid, limit, usual, permille: (limit / usual) * ONE_THOUSAND }],
  );
  if (known.length === 0) return unknown('not told');
  const capped = known.find(({ permille }) => permille < policy.checks.min_power_permille);
  if (capped === undefined) return passed(`${known.length} cards`);
  const measured = `${capped.uuid}: ${capped.limit} W of ${capped.usual} W`;
  return failed('GPU_POWER_CAPPED', measured, 'A card is throttled by its power limit');
};

export const judgeGpuWedge: Judge = ({ inventory, measured, policy }) => {
  const { gpu } = withLoad(inventory, measured.load);
  const { wedge_utilization_percent: busy, wedge_memory_permille: empty } = policy.checks;
  if (gpu.devices.every((device) => device.utilization_percent === null))
    return unknown('not told');
  const wedged = gpu.devices.find(
    (device) =>
      (device.utilization_percent ?? 0) >= busy &&
      memoryPermille(device) <= empty &&
      device.processes === 0,
  );
  if (wedged === undefined) return passed('none');
  const message = 'A card is fully busy with nothing on it';
  const words = `${wedged.uuid}: ${wedged.utilization_percent} %`;
  return { ...failed('GPU_WEDGED', words, message), inARow: 2 };
};

export const judgeIdleUse: Judge = ({ inventory, measured: { load }, executor, policy }) => {
  if (executor.rented) return unknown('rented');
  const { gpu } = withLoad(inventory, load);
  const { idle_utilization_percent: busy, idle_memory_permille: full } = policy.checks;
  const idle = gpu.devices.filter(
    (device) => device.leased_by === null && device.lease_state === 'free',
  );
  if (idle.length === 0) return unknown('no free GPU');
  const used = idle.find(
    (device) =>
      (device.processes ?? 0) > 0 &&
      ((device.utilization_percent ?? 0) >= busy || memoryPermille(device) > full),
  );
  if (used === undefined) return passed('idle');
  const { uuid, utilization_percent: percent, memory_used_mib: mib, processes } = used;
  const measured = `${uuid}: ${percent ?? '?'} %, ${mib ?? '?'} MiB, ${processes} processes`;
  const message = 'A GPU works for somebody although no pod has it';
  return { ...failed('GPU_BUSY_OUTSIDE_POD', measured, message), inARow: 2 };
};

function memoryPermille({ memory_used_mib: used, memory_total_mib: total }: GpuDevice): number {
  return total === 0 ? 0 : ((used ?? 0) / total) * ONE_THOUSAND;
}
