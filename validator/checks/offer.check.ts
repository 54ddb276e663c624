/** Checks of the offer: bans, collateral, and load that the marketplace did not cause. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, type Failure, fail } from './check.ts';
import type { CheckPolicy } from './check-policy.ts';
import { withLoad } from './measured.ts';

/** Consecutive failures at which the check fails: some work, such as a package update, ends by itself. */
const LOADED_IN_A_ROW = 3;
const PERCENT = 100;
const KIB_PER_GIB = 1_048_576;

export const banned = defineCheck({
  id: 'banned',
  detects: 'a banned provider or card',
  required: 'neither provider nor card is banned',
  category: 'policy',
  whileRented: true,
  judge({ inventory: { gpu }, executor, policy }) {
    const { banned_hotkeys: hotkeys, banned_gpus: cards } = policy.checks;
    const { miner_hotkey: hotkey } = executor;
    if (executor.provider_banned === true || hotkeys.some((each) => each === hotkey)) {
      const message = 'The provider is banned, or offers cards of a banned provider';
      return { ...fail('PROVIDER_BANNED', hotkey, message), isCertain: true };
    }
    const card = gpu.devices.find(({ uuid }) => cards.includes(uuid));
    if (card === undefined) return ok('neither provider nor card');
    return { ...fail('GPU_BANNED', card.uuid, 'The card is banned'), isCertain: true };
  },
  remedies: {
    PROVIDER_BANNED: 'Ask the support of the marketplace.',
    GPU_BANNED: 'Remove the card, or ask the support of the marketplace.',
  },
});

export const collateral = defineCheck({
  id: 'collateral',
  detects: 'a provider without a deposit',
  required: 'a deposit for the executor',
  category: 'policy',
  mode: 'shadow',
  judge({ executor: { collateral_deposited: deposited } }) {
    if (deposited === null) return unknown('not reported');
    if (deposited) return ok('deposited');
    return fail('COLLATERAL_MISSING', 'none', 'There is no deposit');
  },
  remedies: { COLLATERAL_MISSING: 'Make the deposit for this executor.' },
});

/** Checks only hosts without a pod: all their load comes from outside the marketplace. */
export const hostSideLoad = defineCheck({
  id: 'host_side_load',
  detects: 'a host that other programs use while it is offered',
  required:
    'at most `max_side_load_cores` busy cores and `max_side_disk_gib` of disk not used by Docker while there is no pod',
  category: 'policy',
  mode: 'shadow',
  judge({ inventory, measured: { load }, executor, policy }) {
    if (executor.rented) return unknown('rented');
    const { cpu } = withLoad(inventory, load);
    const disk = sideDisk(inventory, policy.checks);
    if (disk !== null) return { ...disk, inARow: LOADED_IN_A_ROW };
    if (cpu.utilization_percent === null) return unknown('not reported');
    const cores = (cpu.utilization_percent / PERCENT) * cpu.cores;
    const measured = `${cores.toFixed(1)} of ${cpu.cores} cores`;
    if (cores <= policy.checks.max_side_load_cores) return ok(measured);
    const failure = fail('HOST_SIDE_LOAD', measured, 'The host is busy although it has no pod');
    return { ...failure, inARow: LOADED_IN_A_ROW };
  },
  remedies: { HOST_SIDE_LOAD: 'Stop other programs on the host; move other data off its disk.' },
});

/**
 * The only storage driver with which Docker reports all its disk use; with the containerd image store, Docker reports
 * less.
 */
const REPORTING_DRIVER = 'overlay2';

function sideDisk({ sources, docker }: Inventory, policy: CheckPolicy): Failure | null {
  const usedKib = sources?.side_disk_kib ?? null;
  if (usedKib === null || docker.storage_driver !== REPORTING_DRIVER) return null;
  const usedGib = Math.floor(usedKib / KIB_PER_GIB);
  if (usedGib <= policy.max_side_disk_gib) return null;
  const message = 'Other data takes much of the disk of pods';
  return fail('HOST_SIDE_LOAD', `${usedGib} GiB beside Docker's`, message);
}
