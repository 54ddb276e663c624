/** Chooses the next step for one pod by comparing its row with its agent's report. Pure. */
import { MAX_TEXT_CHARS } from '#shared/api/agent/bounds.ts';
import type { PullProgress } from '#shared/api/agent/images.ts';
import {
  type PodChange,
  type PodPhase,
  type PodView,
  type ReasonCode,
  sshKeysHash,
} from '#shared/api/agent/pod.ts';
import type { Pod } from '../../platform/database/tables.ts';
import {
  CREATION_STATES,
  type PodState,
  podStateOf,
  REMOVAL_STATES,
  TRANSITIONAL_STATES,
  type WirePhase,
  wirePhase,
} from './pod.state.ts';
import type { PodProgress } from './pod.store.ts';
import { podKeysOf } from './pod-key.ts';
import { awaitsNotebook, needsNotebookRequest } from './pod-notebook.ts';

/** Phase of a failed creation that its node has not removed yet. */
export const REMOVAL_PHASE: WirePhase = 'deleting';
/** Phase of a failed creation that its node has removed. */
export const GONE_PHASE = '';

/** Time after which a pod counts as running even if SSH logins do not work, because its image may have no shell. */
export const SSH_WAIT_MS = 30_000;

/** States of pods that are not sent again if the agent has lost them. */
const LEFT_ALONE: readonly PodState[] = ['failed', 'broken', 'stopped'];

/** Reasons of exits that the host or the engine caused. */
const ENDED_BY_HOST: readonly ReasonCode[] = ['HostReboot', 'DockerUnavailable'];

/** Phases of the agent before the container runs. */
const BEFORE_START: readonly PodPhase[] = ['pending', 'pulling', 'creating', 'starting'];

export type SyncStep =
  /** Send the spec. `isLost`: the agent had the pod before, so its count of reboots begins again. */
  | { do: 'put'; isLost: boolean }
  | { do: 'reboot'; reboot: number }
  /** Replace the SSH keys. */
  | { do: 'ssh-keys'; keys: string[] }
  /** Request the notebook server. */
  | { do: 'notebook'; view: PodView }
  /** Stop the pod, or start it again, as `stopped` states. */
  | { do: 'set-stopped'; stopped: boolean }
  /** Remove the pod. A 404 confirms the removal. */
  | { do: 'delete' }
  /** The node has removed the pod. */
  | { do: 'removed' }
  | { do: 'observe'; view: PodView }
  | { do: 'wait' };

/** `view` is undefined if the agent does not list the pod. */
export function nextStep(pod: Pod, view: PodView | undefined): SyncStep {
  const state = podStateOf(pod.state);
  if (REMOVAL_STATES.includes(state)) return removalStep(pod, view);
  if (view === undefined || view.phase === 'removed') {
    return LEFT_ALONE.includes(state)
      ? { do: 'wait' }
      : { do: 'put', isLost: pod.acknowledged_generation > 0 };
  }
  if (view.desired === 'removed') return { do: 'wait' };
  const stopped = state === 'stopped';
  if (view.stopped !== stopped) return { do: 'set-stopped', stopped };
  if (stopped) return { do: 'wait' };
  if (view.generation < pod.generation) return { do: 'put', isLost: false };
  const keys = podKeysOf(pod).map((key) => key.public_key);
  if (keys.length > 0 && view.ssh_keys_hash !== sshKeysHash(keys)) return { do: 'ssh-keys', keys };
  if (view.reboots_requested < pod.reboots_requested && state === 'rebooting') {
    return { do: 'reboot', reboot: view.reboots_requested + 1 };
  }
  return needsNotebookRequest(pod, view) ? { do: 'notebook', view } : { do: 'observe', view };
}

function removalStep(pod: Pod, view: PodView | undefined): SyncStep {
  if (pod.phase === GONE_PHASE) return { do: 'wait' };
  if (view?.phase === 'removed') return { do: 'removed' };
  // A pod that the agent does not list may still arrive on the node, if the answer to its launch was lost.
  if (view?.desired === 'removed') return { do: 'wait' };
  return { do: 'delete' };
}

/** Returns true if the executor must be polled again soon. */
export function needsAttention(pod: PodProgress): boolean {
  const state = podStateOf(pod.state);
  return (
    // A restore may take hours, so it is polled less often.
    (TRANSITIONAL_STATES.includes(state) && state !== 'restoring') ||
    awaitsNotebook(pod) ||
    (state === 'creation_failed' && pod.phase !== GONE_PHASE) ||
    (!REMOVAL_STATES.includes(state) &&
      state !== 'restoring' &&
      (pod.acknowledged_generation < pod.generation ||
        pod.reboots_acknowledged < pod.reboots_requested))
  );
}

/** State of a pod as derived from its agent's report. */
export type Observed = {
  state: PodState;
  phase: WirePhase | '';
  reason: ReturnType<typeof reasonOf> | null;
  message: string;
};

export function observedOf(pod: Pod, view: PodView, nowMs: number): Observed {
  const creating = CREATION_STATES.some((state) => state === pod.state);
  const state = creating ? creationState(view, nowMs) : lifeState(podStateOf(pod.state), pod, view);
  const down = view.phase !== 'running' && state === 'running';
  // A running pod may report a problem of its pending change.
  const cause = view.reason === null && showsChange(pod, view) ? view.change : view;
  return {
    state,
    phase: down ? 'starting' : phaseOf(state, view),
    reason: cause.reason === null ? null : reasonOf(cause.reason),
    message: messageOf(cause.message, view),
  };
}

/** Message of a pod. A problem takes precedence over the progress of the pull. */
function messageOf(problem: string, view: PodView): string {
  if (problem !== '') return problem.slice(0, MAX_TEXT_CHARS);
  if (view.pull !== null) return pullMessage(view.pull);
  // The agent reports no problem while it starts the container again.
  return crashesAtStart(view)
    ? `The last attempt ended with exit code ${view.last_exit.exit_code}`
    : '';
}

/** State of a pod whose container is ready while the backup requested with the rental is being restored. */
export const RESTORING: Observed = {
  state: 'restoring',
  phase: 'restoring',
  reason: null,
  message: 'The backup is being restored',
};

/** Returns true if a running restore hides the observed state, because the restore stops the container. */
export function restoringInsteadOf(pod: Pod, seen: Observed): boolean {
  return seen.state === 'running' || pod.state === 'restoring';
}

/**
 * Returns true if the view's change is shown to the renter. The agent reports a failed change until the next change,
 * but the renter sees the failure only until the next reboot.
 */
function showsChange(pod: Pod, view: PodView): view is PodView & { change: PodChange } {
  if (view.change?.stage !== 'failed' || pod.previous_json !== null) return view.change !== null;
  return pod.state !== 'rebooting' && pod.reason_code !== null;
}

/**
 * Returns the phase of a pod that has run before. During a change the phase is `pulling` while the old container still
 * runs.
 */
function phaseOf(state: PodState, view: PodView): WirePhase | '' {
  if (state === 'rebooting' && view.change?.stage === 'preparing') return 'pulling';
  return wirePhase(state) ?? '';
}

function creationState(view: PodView, nowMs: number): PodState {
  switch (view.phase) {
    case 'running':
      return isLoginReady(view, nowMs) && !crashesAtStart(view) ? 'running' : 'starting';
    case 'failed':
    case 'quarantined':
      return 'creation_failed';
    case 'building':
      return 'building';
    case 'pulling':
      return 'pulling';
    case 'backoff':
      return isImageReason(view.reason) ? 'pulling' : 'starting';
    case 'creating':
    case 'starting':
    case 'rebooting':
      return 'starting';
    default:
      return 'pending';
  }
}

/**
 * Returns true if the pod's process has ended by itself and no container has run for half a minute. Such a launch has not
 * succeeded, even if the pod was reached for a moment.
 */
function crashesAtStart(view: PodView): view is PodView & { last_exit: Exit } {
  const { launched, last_exit: exit } = view;
  return !launched && exit !== null && !ENDED_BY_HOST.includes(exit.reason);
}

type Exit = NonNullable<PodView['last_exit']>;

/** Returns true if logins work or SSH_WAIT_MS has passed. An image without a shell never accepts logins but is usable. */
function isLoginReady({ ssh, conditions, phase_since_ms }: PodView, nowMs: number): boolean {
  // An SSH server of the image appears only in the conditions.
  const condition = conditions.find(({ type }) => type === 'SshReady')?.status;
  return (ssh?.ready ?? condition ?? true) || nowMs - phase_since_ms >= SSH_WAIT_MS;
}

/**
 * State of a pod that has run before. Once launched, the pod counts as running between crashes, because its agent restarts
 * it.
 */
function lifeState(state: PodState, pod: Pod, view: PodView): PodState {
  if (view.change !== null && view.change.stage !== 'failed') return 'rebooting';
  if (view.phase === 'failed' || view.phase === 'quarantined') {
    return state === 'rebooting' ? 'reboot_failed' : 'failed';
  }
  if (state === 'rebooting' && isReplaced(view)) return 'rebooting';
  const rebooting = view.phase === 'rebooting' || view.reboots_done < pod.reboots_requested;
  if (rebooting) return 'rebooting';
  return state === 'running' && crashesAtStart(view) ? 'starting' : 'running';
}

/**
 * Returns true while the container that should run does not run: the container of the newest generation or, after a
 * failed change, the former one.
 */
function isReplaced(view: PodView): boolean {
  const isMissing = view.change === null && view.observed_generation < view.generation;
  return isMissing || BEFORE_START.includes(view.phase);
}

export function reasonOf(
  reason: ReasonCode,
): 'image_pull_failed' | 'build_failed' | 'start_failed' {
  if (reason === 'BuildFailed') return 'build_failed';
  return isImageReason(reason) ? 'image_pull_failed' : 'start_failed';
}

function isImageReason(reason: ReasonCode | null): boolean {
  return reason?.startsWith('Image') ?? false;
}

const MB = 1e6;
const GB = 1e9;

/** Progress of a pull for the renter, in whole percent, so that the text changes rarely. */
export function pullMessage(pull: PullProgress): string {
  const { bytes_done: done, bytes_total: total } = pull;
  if (total === 0) return 'Fetching the image';
  const layers = `${pull.layers_done} of ${pull.layers_total} layers fetched`;
  if (done >= total) return `Unpacking the image: ${layers}`;
  const percent = Math.floor((done / total) * 100);
  return `Fetching the image: ${percent} % of ${sizeOf(total)}, ${layers}`;
}

function sizeOf(bytes: number): string {
  return bytes < GB ? `${Math.ceil(bytes / MB)} MB` : `${(bytes / GB).toFixed(1)} GB`;
}
