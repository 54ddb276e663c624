/** What renters pay for is there, runs, and is theirs alone. */
import { failed, type Judge, passed, unknown } from './check.ts';
import type { Measured } from './measured.ts';

/** A driver may miss a card, or list a process that has just ended, for a moment. */
const IN_A_ROW = 2;

export const judgeGpuDrop: Judge = ({ inventory: { gpu }, executor, measured: { pods } }) => {
  if (!executor.rented || pods === null || gpu.error !== null) return unknown('not told');
  const there = new Set(gpu.devices.map(({ uuid }) => uuid));
  const held = presentOf(pods).flatMap(({ gpu_uuids: uuids }) => uuids);
  const lost = held.filter((uuid) => !there.has(uuid));
  if (lost.length === 0) return passed(`${held.length} cards`);
  const failure = failed('RENTED_GPU_LOST', lost.slice(0, 5).join(', '), 'A rented card is gone');
  return { ...failure, inARow: IN_A_ROW };
};

export const judgeSideUse: Judge = ({ inventory: { gpu } }) => {
  const seen = gpu.devices.filter(({ outside_processes: count }) => (count ?? null) !== null);
  if (seen.length === 0) return unknown('not told');
  const used = seen.find(({ outside_processes: count }) => (count ?? 0) > 0);
  if (used === undefined) return passed(`${seen.length} cards`);
  const measured = `${used.uuid}: ${used.outside_processes} processes`;
  const message = 'Somebody else is at work on the card of a pod';
  return { ...failed('GPU_PROCESS_OUTSIDE_POD', measured, message), inARow: IN_A_ROW };
};

const DEAD: ReadonlySet<string> = new Set(['failed', 'quarantined']);
/** What the host brings about. All else may be the doing of the renter's image and program, or of a registry. */
const BY_HOST: ReadonlySet<string> = new Set([
  ...['HostReboot', 'DockerUnavailable', 'RuntimeMissing', 'Internal'],
  ...['GpuUnavailable', 'GpuDirty', 'GpuUnhealthy', 'GpuLostInContainer'],
  ...['PortConflict', 'PortPoolExhausted', 'NameTaken'],
]);

/**
 * Of the pods that the host has. One that it has not may never have reached it, which is no fault of its own:
 * judgeLedger tells of that.
 */
export const judgePodAlive: Judge = ({ executor, measured: { pods } }) => {
  if (!executor.rented || pods === null)
    return unknown(executor.rented ? 'not told' : 'not rented');
  const present = presentOf(pods);
  if (present.length === 0) return unknown('no pod');
  const words = present.map(({ id, phase, reason }) => `${id} ${phase} ${reason ?? ''}`.trim());
  const measured = words.join(', ');
  if (present.some(({ phase }) => !DEAD.has(phase))) return passed(measured);
  const byHost = present.filter(({ reason }) => reason === null || BY_HOST.has(reason));
  if (byHost.length === 0) {
    return { status: 'passed', measured, warning: 'The pod was not ended by the host' };
  }
  const causes = byHost.flatMap(({ reason }) => reason ?? []);
  const cause = causes.length === 0 ? '' : `: ${causes.join(', ')}`;
  const failure = failed('POD_NOT_RUNNING', measured, `No pod of a rented host runs${cause}`);
  return { ...failure, inARow: IN_A_ROW };
};

/** A rental that has just begun or ended, and a probe of another validator, are over by then; our own are known. */
const DISAGREED_IN_A_ROW = 3;
const MAX_NAMED = 5;

/** Of the pods that the host has and those that the market knows there. */
export const judgeLedger: Judge = ({ executor: { pod_ids: rented }, measured }) => {
  const { pods, own_pods: ours } = measured;
  if (rented === null || pods === null) return unknown('not told');
  const there = presentOf(pods).map(({ id }) => id);
  const strange = there.filter((id) => !rented.includes(id) && !ours.includes(id));
  const missing = rented.filter((id) => !there.includes(id));
  const named = (ids: readonly string[]) => ids.slice(0, MAX_NAMED).join(', ');
  const inARow = DISAGREED_IN_A_ROW;
  if (missing.length > 0) {
    const message = 'A pod is rented that the host does not have';
    return { ...failed('RENTED_POD_MISSING', named(missing), message), inARow };
  }
  if (strange.length > 0) {
    const message = 'The host has a pod that nobody rents';
    return { ...failed('POD_NOT_RENTED', named(strange), message), inARow };
  }
  return passed(`${there.length} pods`);
};

type Pods = NonNullable<Measured['pods']>;

const presentOf = (pods: Pods): Pods => pods.filter(({ phase }) => phase !== 'removed');
