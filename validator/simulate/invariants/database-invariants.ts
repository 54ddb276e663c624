/** Invariants of the central API's database, which are checked every hour of a simulation and at its end. */
import { auditLedger } from '../../central/money/ledger/audit.service.ts';
import type { Database } from '../../central/platform/database/tables.ts';
import type { Violations } from './violations.ts';

/** States of pods that hold no GPU. */
const ENDED = ['creation_failed', 'deleted'];
const MAX_SHOWN = 5;

/** Checks the ledger: sums, holds, and one posting for each cause. */
export async function checkLedger(db: Database, violations: Violations): Promise<string> {
  const { findings, more, hash } = await db.transaction().execute((tx) => auditLedger(tx));
  const shown = findings.slice(0, MAX_SHOWN);
  if (shown.length > 0) {
    const text = shown.map(({ rule, where, what }) => `${rule} ${where} ${what}`).join('; ');
    const others = findings.length + more - shown.length;
    const subjects = shown.flatMap(({ where }) => where.split(' ').slice(1));
    violations.report('ledger', others > 0 ? `${text}; ${others} more` : text, subjects);
  }
  return hash;
}

/** Checks that GPU slots and pods agree. */
export async function checkSlots(db: Database, violations: Violations): Promise<void> {
  const taken = await db
    .selectFrom('gpu_slots')
    .innerJoin('pods', 'pods.id', 'gpu_slots.pod_id')
    .select(['gpu_slots.executor_id', 'gpu_slots.pod_id', 'pods.state'])
    .where('pods.state', 'in', ENDED)
    .limit(MAX_SHOWN)
    .execute();
  for (const { executor_id: executorId, pod_id: podId, state } of taken) {
    violations.report('slot-of-pod', `a slot belongs to a pod that is ${state}`, [
      executorId,
      podId ?? '',
    ]);
  }
}
