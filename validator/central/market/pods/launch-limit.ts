/**
 * Time limit of a launch. The limit is longer while the image is built or pulled. The README of this folder has the
 * rules. Pure.
 */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { EventReason } from '../../delivery/events/event.schemas.ts';
import type { Pod } from '../../platform/database/tables.ts';
import type { CreationFailure } from './creation-failure.ts';
import { CREATION_STATES } from './pod.state.ts';

export const MINUTE_MS = 60_000;
export const DEFAULT_LAUNCH_LIMIT_MS = 10 * MINUTE_MS;
/** Longest limit of a launch, which applies while its image is built or pulled. */
export const LONGEST_LAUNCH_MS = 120 * MINUTE_MS;
/** Number of bytes of the image per minute that extend the limit of a launch. */
const BYTES_PER_MINUTE = 1_000_000;
/** Shortest time between two updates of the stored progress. */
const RESOLUTION_MS = 20_000;

type LaunchColumns = Pick<
  Pod,
  'launch_began_at' | 'launch_until' | 'launch_bytes' | 'launch_bytes_at'
>;

/** Returns the columns of a launch that begins now. */
export function launchFrom(nowMs: number, limitMs: number): LaunchColumns {
  return {
    launch_began_at: nowMs,
    launch_until: nowMs + limitMs,
    launch_bytes: 0,
    launch_bytes_at: nowMs,
  };
}

/** Returns true until the pod runs for the first time, including the time in which its volume or backup is restored. */
export function isLaunching(pod: Pick<Pod, 'state' | 'first_running_at'>): boolean {
  return pod.first_running_at === null && CREATION_STATES.some((state) => state === pod.state);
}

/** Returns true if the launch has used up its time. The time of a restore is not counted. */
export function isLaunchLate(
  pod: Pick<Pod, 'state' | 'first_running_at' | 'launch_until'>,
  nowMs: number,
): boolean {
  const { launch_until: untilMs } = pod;
  return isLaunching(pod) && pod.state !== 'restoring' && untilMs !== null && nowMs >= untilMs;
}

/** Returns the columns that a report of the agent changes; null if there are none. */
export function launchProgress(
  pod: Pod,
  view: PodView,
  { nowMs, limitMs }: { nowMs: number; limitMs: number },
): Partial<LaunchColumns> | null {
  const { launch_bytes: knownBytes, launch_bytes_at: atMs } = pod;
  if (!isLaunching(pod) || atMs === null) return null;
  if (hasImage(view)) {
    // After an image that took some time, the container gets the whole limit.
    const tookTime = knownBytes > 0 || pod.state === 'building';
    return { launch_bytes_at: null, ...(tookTime ? prolonged(pod, nowMs + limitMs) : {}) };
  }
  const elapsedMs = nowMs - atMs;
  const mark = { launch_bytes_at: nowMs, launch_bytes: bytesOf(view, knownBytes) };
  const arrived = mark.launch_bytes - knownBytes;
  // A repeated pull counts its bytes from zero again.
  if (arrived < 0) return mark;
  if (elapsedMs < RESOLUTION_MS) return null;
  // The agent limits the time of a build.
  const isFast = arrived > 0 && arrived * MINUTE_MS >= BYTES_PER_MINUTE * elapsedMs;
  if (isFast || view.phase === 'building') return { ...mark, ...prolonged(pod, nowMs + MINUTE_MS) };
  return elapsedMs < MINUTE_MS ? null : mark;
}

function prolonged(pod: LaunchColumns, untilMs: number): Partial<LaunchColumns> {
  const { launch_began_at: beganMs, launch_until: beforeMs } = pod;
  if (beganMs === null || beforeMs === null) return {};
  const latestMs = Math.max(beforeMs, beganMs + LONGEST_LAUNCH_MS);
  return { launch_until: Math.min(latestMs, Math.max(beforeMs, untilMs)) };
}

function hasImage({ phase, container_id }: PodView): boolean {
  return container_id !== null || ['creating', 'starting', 'running'].includes(phase);
}

/** Returns the downloaded and unpacked bytes. Between two attempts no pull is reported. */
function bytesOf({ pull }: PodView, known: number): number {
  return pull === null ? known : pull.bytes_done + pull.bytes_extracted;
}

/** Returns the reason why the launch failed at its limit, according to the agent's last report. */
export function lateLaunch(pod: Pod, nowMs: number): CreationFailure {
  const minutes = Math.round((nowMs - (pod.launch_began_at ?? nowMs)) / MINUTE_MS);
  const [reason, problem] = problemOf(pod);
  const message = `Not running after ${minutes} minutes: ${pod.message || problem}`;
  // The node never accepted the pod, for example because its GPUs remained in use.
  const isNodeFault = reason === 'start_failed' && pod.acknowledged_generation === 0;
  return { reason, message, gpusFree: true, isNodeFault };
}

/** Failure of a launch whose node did not answer. The agent may have received the pod. */
export const SILENT_LAUNCH: CreationFailure = {
  reason: 'provider_fault',
  message: 'The node did not answer before the time limit of the launch',
  gpusFree: false,
  isNodeFault: true,
};

const REPORTED: readonly EventReason[] = ['image_pull_failed', 'build_failed', 'start_failed'];

function problemOf({ state, reason_code: code }: Pod): [EventReason, string] {
  const reported = REPORTED.find((reason) => reason === code);
  if (state === 'building') return [reported ?? 'build_failed', 'the image is not built'];
  if (state === 'pulling') return [reported ?? 'image_pull_failed', 'the image is not complete'];
  return [reported ?? 'start_failed', 'the container has not started'];
}
