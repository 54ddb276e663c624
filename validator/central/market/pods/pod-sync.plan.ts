/** What is to be done about one pod, from its row and what its agent says of it. Pure. */
import { MAX_TEXT_CHARS } from '#shared/api/agent/bounds.ts';
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
import { podKeysOf } from './pod-keys.ts';
import { awaitsNotebook, isToBeAsked } from './pod-notebook.ts';
import { pullMessage } from './pull-message.ts';

/** The phase of a failed creation that its node still has to drop. */
export const REMOVAL_PHASE: WirePhase = 'deleting';
/** The phase of a failed creation of which nothing is left on the node. */
export const GONE_PHASE = '';

/** A pod whose login does not work by then counts as running without it. */
export const SSH_WAIT_MS = 30_000;

/** Not started again when the agent has lost them; their removal is the renter's to ask for. */
const LEFT_ALONE: readonly PodState[] = ['failed', 'broken', 'stopped'];

/** Phases of the agent in which a container is on its way. */
const BEFORE_START: readonly PodPhase[] = ['pending', 'pulling', 'creating', 'starting'];

export type SyncStep =
  /** Send the spec. `anew`: the agent had it once and lost it, so its counts begin again. */
  | { do: 'put'; anew: boolean }
  | { do: 'reboot'; reboot: number }
  /** Send the whole list of SSH keys. */
  | { do: 'ssh-keys'; keys: string[] }
  /** Ask for the notebook server that the row wants. */
  | { do: 'notebook'; view: PodView }
  /** Have it stand still, or go on. */
  | { do: 'stand'; stopped: boolean }
  /** Ask for the removal; an agent that knows no such pod confirms it. */
  | { do: 'delete' }
  /** Nothing of it is left on the node. */
  | { do: 'gone' }
  | { do: 'observe'; view: PodView }
  | { do: 'wait' };

/** The next step for one pod; `view` is undefined when the agent does not list it. */
export function nextStep(pod: Pod, view: PodView | undefined): SyncStep {
  const state = podStateOf(pod.state);
  if (REMOVAL_STATES.includes(state)) return removalStep(pod, view);
  if (view === undefined || view.phase === 'removed') {
    return LEFT_ALONE.includes(state)
      ? { do: 'wait' }
      : { do: 'put', anew: pod.acknowledged_generation > 0 };
  }
  if (view.desired === 'removed') return { do: 'wait' };
  const stopped = state === 'stopped';
  if (view.stopped !== stopped) return { do: 'stand', stopped };
  if (stopped) return { do: 'wait' };
  if (view.generation < pod.generation) return { do: 'put', anew: false };
  const keys = podKeysOf(pod).map((key) => key.public_key);
  if (keys.length > 0 && view.ssh_keys_hash !== sshKeysHash(keys)) return { do: 'ssh-keys', keys };
  if (view.reboots_requested < pod.reboots_requested && state === 'rebooting') {
    return { do: 'reboot', reboot: view.reboots_requested + 1 };
  }
  return isToBeAsked(pod, view) ? { do: 'notebook', view } : { do: 'observe', view };
}

function removalStep(pod: Pod, view: PodView | undefined): SyncStep {
  if (pod.phase === GONE_PHASE) return { do: 'wait' };
  if (view?.phase === 'removed') return { do: 'gone' };
  // One that the agent does not list may still arrive there: a launch whose answer was lost.
  if (view?.desired === 'removed') return { do: 'wait' };
  return { do: 'delete' };
}

/** Whether its executor is to be asked again soon. */
export function needsAttention(pod: Pod): boolean {
  const state = podStateOf(pod.state);
  return (
    // A restore may take hours; it is followed at the pace of long work.
    (TRANSITIONAL_STATES.includes(state) && state !== 'restoring') ||
    awaitsNotebook(pod) ||
    (state === 'creation_failed' && pod.phase !== GONE_PHASE) ||
    (!REMOVAL_STATES.includes(state) &&
      state !== 'restoring' &&
      (pod.acknowledged_generation < pod.generation ||
        pod.reboots_acknowledged < pod.reboots_requested))
  );
}

/** Where a pod stands by what its agent says. */
export type Observed = {
  state: PodState;
  phase: WirePhase | '';
  reason: ReturnType<typeof reasonOf> | null;
  message: string;
};

/** What the row is to say once the agent has said `view`. */
export function observedOf(pod: Pod, view: PodView, nowMs: number): Observed {
  const creating = CREATION_STATES.some((state) => state === pod.state);
  const state = creating ? creationState(view, nowMs) : lifeState(podStateOf(pod.state), pod, view);
  const down = view.phase !== 'running' && state === 'running';
  // What runs may be well and its change in trouble.
  const cause = view.reason === null && tellsOfChange(pod, view) ? view.change : view;
  return {
    state,
    phase: down ? 'starting' : phaseOf(state, view),
    reason: cause.reason === null ? null : reasonOf(cause.reason),
    message: messageOf(cause.message, view),
  };
}

/** What is wrong tells more than how far the image has come. */
function messageOf(problem: string, { pull }: PodView): string {
  if (problem !== '' || pull === null) return problem.slice(0, MAX_TEXT_CHARS);
  return pullMessage(pull);
}

/** A pod that is ready but for the backup that it was rented with. */
export const RESTORING: Observed = {
  state: 'restoring',
  phase: 'restoring',
  reason: null,
  message: 'The backup is being restored',
};

/** Whether a restore that goes on tells more than the agent: for it the container stands still in between. */
export function restoringInsteadOf(pod: Pod, seen: Observed): boolean {
  return seen.state === 'running' || pod.state === 'restoring';
}

/** The agent remembers a change that failed; to its renter it is over with the next reboot. */
function tellsOfChange(pod: Pod, view: PodView): view is PodView & { change: PodChange } {
  if (view.change?.stage !== 'failed' || pod.previous_json !== null) return view.change !== null;
  return pod.state !== 'rebooting' && pod.reason_code !== null;
}

/** The old container goes on while the image of the new one is fetched. */
function phaseOf(state: PodState, view: PodView): WirePhase | '' {
  if (state === 'rebooting' && view.change?.stage === 'preparing') return 'pulling';
  return wirePhase(state) ?? '';
}

function creationState(view: PodView, nowMs: number): PodState {
  switch (view.phase) {
    case 'running':
      return isLoginReady(view, nowMs) ? 'running' : 'starting';
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

/** An image without a shell never lets anybody in, and is somebody's all the same. */
function isLoginReady({ ssh, conditions, phase_since_ms }: PodView, nowMs: number): boolean {
  // A server that the image brings is told of by the condition alone.
  const told = conditions.find(({ type }) => type === 'SshReady')?.status;
  return (ssh?.ready ?? told ?? true) || nowMs - phase_since_ms >= SSH_WAIT_MS;
}

/** Of a pod that has run before. Between crashes it counts as running: its agent restarts it. */
function lifeState(state: PodState, pod: Pod, view: PodView): PodState {
  if (view.change !== null && view.change.stage !== 'failed') return 'rebooting';
  if (view.phase === 'failed' || view.phase === 'quarantined') {
    return state === 'rebooting' ? 'reboot_failed' : 'failed';
  }
  if (state === 'rebooting' && isReplaced(view)) return 'rebooting';
  const rebooting = view.phase === 'rebooting' || view.reboots_done < pod.reboots_requested;
  return rebooting ? 'rebooting' : 'running';
}

/** The newest generation's container is not there yet, or the one before it is not back yet. */
function isReplaced(view: PodView): boolean {
  const isMissing = view.change === null && view.observed_generation < view.generation;
  return isMissing || BEFORE_START.includes(view.phase);
}

/** The agent's reason as one of the market's (contract 5.2). */
export function reasonOf(
  reason: ReasonCode,
): 'image_pull_failed' | 'build_failed' | 'start_failed' {
  if (reason === 'BuildFailed') return 'build_failed';
  return isImageReason(reason) ? 'image_pull_failed' : 'start_failed';
}

function isImageReason(reason: ReasonCode | null): boolean {
  return reason?.startsWith('Image') ?? false;
}
