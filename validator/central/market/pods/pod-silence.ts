/** Writes into the rows of pods that their node does not answer: they go on, unpaid, until the loss is certain (marketplace reference 1.15, 2.3.9). */
import { refundFault } from '../../money/metering/provider-fault.ts';
import { followPod } from '../../money/metering/usage.service.ts';
import type { Database, Pod } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { findExecutor } from '../executors/executor.service.ts';
import { mayMove, podStateOf, wirePhase } from './pod.state.ts';
import { changePod, findPod, isBeingCreated, movePod } from './pod.store.ts';
import { CONTACT_LOST_MS, lossOf } from './pod-contact.ts';
import { type TellDeps, tellMove } from './pod-sync.tell.ts';

export type PodSilenceDeps = TellDeps & {
  db: Database;
  /** Whether the node's maintenance was announced for that time. */
  inMaintenance(executorId: string, atMs: number): Promise<boolean>;
  /** Ends the creation of a pod whose node is lost. */
  endCreation(pod: Pod, message: string): Promise<void>;
};

export function createPodSilence(deps: PodSilenceDeps) {
  const { db, clock, inMaintenance, endCreation } = deps;
  const phase = wirePhase('unknown') ?? '';

  /** What was charged since the pod was last well goes back. */
  async function giveUp(pod: Pod, message: string, nowMs: number): Promise<void> {
    if (isBeingCreated(pod)) return endCreation(pod, message);
    const from = podStateOf(pod.state);
    await moneyTransaction(deps, async (tx) => {
      const reason = 'provider_fault';
      const change = { phase: '', reason_code: reason, message, updated_at: nowMs };
      // A reboot that somebody follows again has the same state.
      await lockRow(tx, 'pods', pod.id);
      if ((await findPod(tx, pod.id))?.phase !== phase) return;
      if (!(await movePod(tx, pod.id, 'broken', change, { from: [from] }))) return;
      await tellMove(tx, deps, pod, 'broken', { reason, message });
      await refundFault(tx, deps, pod, nowMs);
    });
  }

  /** Nobody pays for what nobody has seen. */
  async function lose(
    pod: Pod,
    how: { lostAtMs: number; nowMs: number; announced: boolean },
  ): Promise<void> {
    const { nowMs, lostAtMs: atMs, announced } = how;
    const from = podStateOf(pod.state);
    const metered = { atMs, cause: announced ? 'maintenance' : 'contact_lost' } as const;
    if (from === 'rebooting' && pod.phase !== phase) {
      await moneyTransaction(deps, async (tx) => {
        if (!(await changePod(tx, pod.id, [from], { phase }))) return;
        await followPod(tx, pod.id, 'unknown', { ...metered, nowMs });
      });
    }
    if (!mayMove(from, 'unknown')) return;
    await moneyTransaction(deps, async (tx) => {
      const change = { phase, updated_at: nowMs };
      if (!(await movePod(tx, pod.id, 'unknown', change, { from: [from], ...metered }))) return;
      await tellMove(tx, deps, pod, 'unknown', { reason: 'provider_fault', message: '' });
    });
  }

  /** Every pod of one node as read before it was asked; without effect on those that have moved on since. */
  return async function unanswered(executorId: string, pods: readonly Pod[]): Promise<void> {
    const nowMs = clock.now();
    const silent = pods.filter((pod) => nowMs - heardMs(pod) >= CONTACT_LOST_MS);
    if (silent.length === 0) return;
    const announced = await inMaintenance(executorId, nowMs);
    const node = await findExecutor(db, executorId);
    for (const pod of silent) {
      const lostAtMs = heardMs(pod);
      // A reboot that nobody can follow is still one: its phase alone tells.
      const isMissed =
        pod.state === 'unknown' || (pod.state === 'rebooting' && pod.phase === phase);
      if (!isMissed && !isBeingCreated(pod)) {
        await lose(pod, { lostAtMs, nowMs, announced });
        continue;
      }
      const loss = announced ? null : lossOf(node, { lostAtMs, nowMs });
      if (loss !== null) await giveUp(pod, loss, nowMs);
    }
  };
}

function heardMs({ seen_at: seenAtMs, created_at: createdMs }: Pod): number {
  return seenAtMs ?? createdMs;
}
