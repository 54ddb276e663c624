/**
 * Pods on a node that does not answer. Time without contact is not charged, and a pod becomes `broken` once its loss is
 * certain. The README of this folder has the rules.
 */
import { CheckResult, isBlocking } from '#shared/api/central/validator-routes.ts';
import type { ApiError } from '#shared/runtime/errors.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import { refundFault } from '../../money/metering/provider-fault.ts';
import { billablePodIds, meterTransition } from '../../money/metering/usage.service.ts';
import type { Database, Pod } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { type ExecutorEntry, findExecutor } from '../executors/executor.service.ts';
import { BILLABLE_STATES, mayMove, podStateOf, wirePhase } from './pod.state.ts';
import { changePod, findPod, isBeingCreated, movePod } from './pod.store.ts';
import { recordTransition, type TransitionDeps } from './pod-events.ts';

/** Time without contact after which a running pod becomes `unknown`. */
export const CONTACT_LOST_MS = 60_000;
/** Time without contact after which an `unknown` pod becomes `broken`. */
export const BROKEN_AFTER_MS = 2 * 3_600_000;
/** Time for which a due action waits for contact with the node before it runs without contact. */
export const CONTACT_WAIT_MS = 30_000;

const UNREACHED = 'The node could not be reached for two hours';
const CONFIRMED = 'The node cannot be reached, which a validator has confirmed';
/** Reason code of the validator’s check whether the agent answers. */
const UNREACHABLE = 'AGENT_UNREACHABLE';

/** Returns true for a call that may or may not have had an effect on the agent. */
export function isUnanswered({ status }: ApiError): boolean {
  return status >= 500 || status === 401 || status === 429;
}

type Contact = Pick<Pod, 'state' | 'phase' | 'seen_at'>;

/** Returns true if the pod is billable at `atMs` although its node had already been silent for CONTACT_LOST_MS. */
export function isSilent({ state, phase, seen_at: seenAtMs }: Contact, atMs: number): boolean {
  const isBillable = BILLABLE_STATES.some((billable) => billable === state);
  if (!isBillable || phase === wirePhase('unknown') || seenAtMs === null) return false;
  return atMs - seenAtMs >= CONTACT_LOST_MS;
}

/** The time until which a pod that ends at `atMs` is charged: the last contact if its node is silent. */
export function billableUntil(pod: Contact, atMs: number): number {
  return isSilent(pod, atMs) ? (pod.seen_at ?? atMs) : atMs;
}

/**
 * Returns the time to which an action is postponed because the node of one of the pods does not respond; null to run
 * the action now. An action is postponed only once, counted from its planned time.
 */
export function deferUntilContact(
  pods: readonly Contact[],
  { plannedMs, dueAtMs, nowMs }: { plannedMs: number; dueAtMs: number; nowMs: number },
): number | null {
  if (dueAtMs !== plannedMs || !pods.some((pod) => isSilent(pod, plannedMs))) return null;
  return nowMs + CONTACT_WAIT_MS;
}

type Verdict = Pick<ExecutorEntry, 'state' | 'verdict_at' | 'checks_json'>;

/**
 * Returns the reason why a pod whose node is silent since `lostAtMs` is broken; null while the node may still answer
 * again.
 */
export function lossReason(
  node: Verdict | undefined,
  { lostAtMs, nowMs }: { lostAtMs: number; nowMs: number },
): string | null {
  if (nowMs - lostAtMs >= BROKEN_AFTER_MS) return UNREACHED;
  return node !== undefined && isConfirmed(node, lostAtMs) ? CONFIRMED : null;
}

/**
 * Returns true if the node's verdict confirms the loss. The verdict must be at least CONTACT_LOST_MS later than the
 * last contact.
 */
function isConfirmed(
  { state, verdict_at: verdictAtMs, checks_json: checks }: Verdict,
  lostAtMs: number,
): boolean {
  if (state !== 'failed' || (verdictAtMs ?? 0) - lostAtMs < CONTACT_LOST_MS) return false;
  return CheckResult.array()
    .parse(JSON.parse(checks))
    .some((check) => isBlocking(check) && check.reason_code === UNREACHABLE);
}

/**
 * A lost contact. `announced` is true during maintenance that the provider has announced; `isNodeFault` is true if this
 * process observed the silence of the node for CONTACT_LOST_MS.
 */
type Loss = { lostAtMs: number; nowMs: number; announced: boolean; isNodeFault: boolean };

export type LostContactDeps = TransitionDeps & {
  db: Database;
  /** Returns true if the provider announced maintenance of the node for that time. */
  inMaintenance(executorId: string, atMs: number): Promise<boolean>;
  failCreation(pod: Pod, message: string): Promise<void>;
  trust: Pick<ClockTrust, 'isSuspect' | 'resumedAtMs'>;
};

export function createLostContact(deps: LostContactDeps) {
  const { db, clock, inMaintenance, failCreation, trust } = deps;
  /**
   * Time until which this process could not observe nodes, because it did not run or the gateway did not answer. The
   * silence of a node before that time does not count against the node.
   */
  let blindUntilMs = clock.now();
  const unreachable = wirePhase('unknown') ?? '';

  /** Moves the pod to `broken` and refunds the charges since the pod was last healthy. */
  async function markBroken(pod: Pod, message: string, nowMs: number): Promise<void> {
    if (isBeingCreated(pod)) return failCreation(pod, message);
    const from = podStateOf(pod.state);
    await moneyTransaction(deps, async (tx) => {
      const reason = 'provider_fault';
      const change = { phase: '', reason_code: reason, message, updated_at: nowMs };
      // A rebooting pod keeps its state while it is unreachable, so the phase is also checked.
      await lockRow(tx, 'pods', pod.id);
      if ((await findPod(tx, pod.id))?.phase !== unreachable) return;
      if (!(await movePod(tx, pod.id, 'broken', change, { from: [from] }))) return;
      await recordTransition(tx, deps, pod, 'broken', { reason, message });
      await refundFault(tx, deps, pod, nowMs);
    });
  }

  /** Stops charging from the last contact on. A rebooting pod stays `rebooting` and changes only its phase. */
  async function markUnreachable(
    pod: Pod,
    { lostAtMs, nowMs, announced, isNodeFault }: Loss,
  ): Promise<void> {
    const from = podStateOf(pod.state);
    const cause = announced ? 'maintenance' : 'contact_lost';
    const metered = { atMs: lostAtMs, cause } as const;
    if (from === 'rebooting' && pod.phase !== unreachable) {
      await moneyTransaction(deps, async (tx) => {
        if (!(await changePod(tx, pod.id, [from], { phase: unreachable }))) return;
        await meterTransition(tx, pod.id, 'unknown', { ...metered, nowMs });
      });
    }
    if (!mayMove(from, 'unknown')) return;
    await moneyTransaction(deps, async (tx) => {
      const change = { phase: unreachable, updated_at: nowMs };
      if (!(await movePod(tx, pod.id, 'unknown', change, { from: [from], ...metered }))) return;
      await recordTransition(tx, deps, pod, 'unknown', {
        reason: 'provider_fault',
        message: '',
        isNodeFault: isNodeFault && !announced,
      });
    });
  }

  /**
   * `pods` are the node's rows, read before the call to its agent. Rows that have changed since are skipped.
   * `isOfNode` is false if the gateway did not respond either; then the node's reliability is not affected.
   */
  async function recordUnanswered(
    executorId: string,
    pods: readonly Pod[],
    isOfNode: boolean,
  ): Promise<void> {
    const nowMs = clock.now();
    if (trust.isSuspect()) {
      blindUntilMs = nowMs;
      return;
    }
    // After a step the earlier times of this process are on another scale.
    blindUntilMs = Math.max(blindUntilMs, trust.resumedAtMs());
    // A clock that was set back does not prolong the time.
    blindUntilMs = isOfNode ? Math.min(blindUntilMs, nowMs) : nowMs;
    const isNodeFault = nowMs - blindUntilMs >= CONTACT_LOST_MS;
    const silent = pods.filter((pod) => nowMs - lastContactMs(pod) >= CONTACT_LOST_MS);
    if (silent.length === 0) return;
    const announced = await inMaintenance(executorId, nowMs);
    const node = await findExecutor(db, executorId);
    for (const pod of silent) {
      const lostAtMs = lastContactMs(pod);
      const isMarked =
        pod.state === 'unknown' || (pod.state === 'rebooting' && pod.phase === unreachable);
      if (!isMarked && !isBeingCreated(pod)) {
        await markUnreachable(pod, { lostAtMs, nowMs, announced, isNodeFault });
        continue;
      }
      const observedLossMs = Math.max(lostAtMs, blindUntilMs);
      const loss = announced ? null : lossReason(node, { lostAtMs: observedLossMs, nowMs });
      if (loss !== null) await markBroken(pod, loss, nowMs);
    }
  }

  /**
   * Ends the metered time of all pods now, or at their last contact, as if their nodes were silent, until a pass reaches
   * the nodes again. Throws if a pod is still metered.
   */
  async function suspendMeters(at: 'now' | 'last-contact'): Promise<void> {
    for (let round = 0; round < SUSPEND_ROUNDS; round += 1) {
      const ids = await billablePodIds(db);
      if (ids.length === 0) return;
      for (const id of ids) {
        const pod = await findPod(db, id);
        if (pod === undefined) continue;
        const nowMs = clock.now();
        const lostAtMs = at === 'now' ? nowMs : Math.min(nowMs, lastContactMs(pod));
        await markUnreachable(pod, { lostAtMs, nowMs, announced: false, isNodeFault: false });
      }
    }
    throw new Error('pods are still metered');
  }

  return { recordUnanswered, suspendMeters };
}

/** Passes of the sync that already run may make a pod billable again. */
const SUSPEND_ROUNDS = 5;

function lastContactMs({ seen_at: seenAtMs, created_at: createdMs }: Pod): number {
  return seenAtMs ?? createdMs;
}
