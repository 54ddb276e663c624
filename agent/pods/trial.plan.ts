/**
 * Plans the next step of a trial: the time in which a new generation has to show that it works, while its fallback is
 * kept. Pure.
 */
import type { ContainerState } from '../containers/engine/engine.ts';
import { exitOf, messageOfExit } from './backoff.ts';
import {
  causeOfExit,
  isAlive,
  isOfGeneration,
  isWanted,
  neverRan,
  oomReportUntilMs,
  type PlanFacts,
  REMOVING_POLL_MS,
  retryIsAhead,
} from './plan-facts.ts';
import type { Step } from './pod.plan.ts';
import { RESTING_PHASES } from './pod.state.ts';
import type { FallbackGeneration, PodRow } from './pod.store.ts';
import type { Cause } from './pod-generations.ts';
import { lastExitOf } from './pod-row.ts';

/** Time from the stop of the old container until the new one must run. No container of the pod runs in this time. */
export const TRIAL_DEADLINE_MS = 120_000;
/** A container that ends within this time of its start has failed its trial. */
export const SETTLING_MS = 5_000;
/** A login that worked before must work again within this time of the start. */
export const LOGIN_WAIT_MS = 30_000;
const LOGIN_POLL_MS = 500;

const LOST = 'The new container was removed by something other than the agent';
const NO_IMAGE = 'The new image was removed from the host';
const LATE = 'The new container did not start in time';

/** `containers` are all containers of the pod. The old one is stopped before the new one is created. */
export function planTrial(
  row: PodRow,
  fallback: FallbackGeneration,
  containers: readonly ContainerState[],
  facts: PlanFacts,
): Step {
  if (RESTING_PHASES.includes(row.phase)) return rollBack(null);
  const kept = containers.filter((each) => isOfGeneration(each, fallback.generation));
  const trial = containers.find((each) => isWanted(each, row, facts));
  const trialRuns = trial !== undefined && isAlive(trial);
  const late = trialRuns ? null : planLate(row, fallback, facts);
  if (late !== null) return late;
  const stale = containers.filter((each) => each !== trial && !kept.includes(each));
  if (stale.length > 0) return { kind: 'remove_containers', containers: stale };
  const running = kept.find(isAlive);
  if (running !== undefined) return { kind: 'stop_fallback', container: running };
  if (facts.surplusLeases) return { kind: 'release_leases' };
  if (trialRuns) return planSettling(row, fallback, trial, facts);
  return trial === undefined ? planLaunch(row) : planStart(row, trial, facts);
}

/** Returns a rollback if the trial takes too long, a wait for the next retry, or null to continue now. */
function planLate(row: PodRow, fallback: FallbackGeneration, facts: PlanFacts): Step | null {
  const sinceMs = Math.max(fallback.since_ms, facts.watchingSinceMs);
  if (Math.abs(facts.nowMs - sinceMs) >= TRIAL_DEADLINE_MS) {
    return rollBack(row.reason === null ? { reason: 'DeadlineExceeded', message: LATE } : null);
  }
  if (retryIsAhead(row, facts.nowMs)) {
    const untilMs = Math.min(row.next_retry_ms ?? Infinity, sinceMs + TRIAL_DEADLINE_MS);
    return { kind: 'wait', untilMs };
  }
  return null;
}

function planLaunch(row: PodRow): Step {
  if (row.container_id !== null) return rollBack({ reason: 'Internal', message: LOST });
  if (row.image_id === null) return rollBack({ reason: 'ImageNotFound', message: NO_IMAGE });
  return { kind: 'create' };
}

function planStart(row: PodRow, trial: ContainerState, facts: PlanFacts): Step {
  if (trial.status === 'removing') {
    return { kind: 'wait', untilMs: facts.nowMs + REMOVING_POLL_MS };
  }
  const isRecorded = lastExitOf(row)?.finished_ms === trial.finishedMs;
  if (neverRan(trial) || isRecorded) return { kind: 'start', container: trial };
  const cause = causeOfExit(row, trial, facts);
  // The host or the engine caused this exit, so the generation did not fail. Other exits of a container on trial are
  // not recorded.
  if (cause !== 'itself') return { kind: 'record_exit', container: trial, cause };
  const untilMs = oomReportUntilMs(trial, cause, facts.nowMs);
  if (untilMs !== null) return { kind: 'wait', untilMs };
  const exit = exitOf(trial, cause);
  return rollBack({ reason: exit.reason, message: messageOfExit(exit) });
}

/**
 * Plans during the trial. Compares times by their absolute distance, so that a clock that was set back cannot prolong a
 * trial indefinitely.
 */
function planSettling(
  row: PodRow,
  fallback: FallbackGeneration,
  trial: ContainerState,
  facts: PlanFacts,
): Step {
  const known = row.phase === 'running' && row.container_id === trial.id;
  if (!known) return { kind: 'adopt', container: trial };
  const ranMs = Math.abs(facts.nowMs - trial.startedMs);
  if (ranMs < SETTLING_MS) return { kind: 'wait', untilMs: facts.nowMs + SETTLING_MS - ranMs };
  const mustLogIn = fallback.login_worked && ['unknown', 'fails'].includes(facts.login.kind);
  if (!mustLogIn) return { kind: 'commit_change' };
  if (ranMs < LOGIN_WAIT_MS) return { kind: 'wait', untilMs: facts.nowMs + LOGIN_POLL_MS };
  // If the gateway has not reported, nothing is known about logins.
  if (facts.login.kind !== 'fails') return { kind: 'commit_change' };
  const message = `SSH logins worked before the change and fail now: ${facts.login.message}`;
  return rollBack({ reason: 'StartFailed', message });
}

/** A null cause means the row's reason. */
function rollBack(cause: Cause | null): Step {
  return { kind: 'roll_back', cause };
}
