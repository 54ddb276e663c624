/** Whose the offer is, and whether the host is free for it. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { type Failure, failed, type Judge, passed, unknown } from './check.ts';
import type { CheckPolicy } from './check-policy.ts';
import { withLoad } from './load.ts';

/** Something may start for a while, as an update of packages. */
const LOADED_IN_A_ROW = 3;
const PERCENT = 100;
const KIB_PER_GIB = 1_048_576;

export const judgeBanned: Judge = ({ inventory: { gpu }, executor, policy }) => {
  const { banned_hotkeys: hotkeys, banned_gpus: cards } = policy.checks;
  const { miner_hotkey: hotkey } = executor;
  if (executor.provider_banned === true || hotkeys.some((each) => each === hotkey)) {
    return failed('PROVIDER_BANNED', hotkey, 'The provider is banned');
  }
  const banned = gpu.devices.find(({ uuid }) => cards.includes(uuid));
  if (banned === undefined) return passed('neither provider nor card');
  return failed('GPU_BANNED', banned.uuid, 'The card is banned');
};

export const judgeCollateral: Judge = ({ executor: { collateral_deposited: deposited } }) => {
  if (deposited === null) return unknown('not told');
  if (deposited) return passed('deposited');
  return failed('COLLATERAL_MISSING', 'none', 'There is no deposit');
};

/** Of hosts without a pod: all their load is their own. */
export const judgeSideLoad: Judge = ({ inventory, measured: { load }, executor, policy }) => {
  const { cpu } = withLoad(inventory, load);
  if (executor.rented) return unknown('rented');
  const disk = sideDisk(inventory, policy.checks);
  if (disk !== null) return { ...disk, inARow: LOADED_IN_A_ROW };
  if (cpu.utilization_percent === null) return unknown('not told');
  const cores = (cpu.utilization_percent / PERCENT) * cpu.cores;
  const measured = `${cores.toFixed(1)} of ${cpu.cores} cores`;
  if (cores <= policy.checks.max_side_load_cores) return passed(measured);
  const failure = failed('HOST_SIDE_LOAD', measured, 'The host works although no pod is on it');
  return { ...failure, inARow: LOADED_IN_A_ROW };
};

/** With images in a store of its own the engine does not tell all that it has. */
const TELLING_DRIVER = 'overlay2';

function sideDisk({ sources, docker }: Inventory, policy: CheckPolicy): Failure | null {
  const usedKib = sources?.side_disk_kib ?? null;
  if (usedKib === null || docker.storage_driver !== TELLING_DRIVER) return null;
  const usedGib = Math.floor(usedKib / KIB_PER_GIB);
  if (usedGib <= policy.max_side_disk_gib) return null;
  const message = 'Much of the disk of pods is used by others';
  return failed('HOST_SIDE_LOAD', `${usedGib} GiB beside Docker's`, message);
}
