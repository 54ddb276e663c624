/** Invariants of the central API's database: cheap ones for every hour of a simulation, full ones for every day. */
import { messageOf } from '#shared/runtime/errors.ts';
import { TRANSITIONAL_STATES } from '../../central/market/pods/pod.state.ts';
import { auditLedger } from '../../central/money/ledger/audit.service.ts';
import type { Finding } from '../../central/money/ledger/audit.ts';
import type { Database } from '../../central/platform/database/tables.ts';
import { checkMeters } from './money-checks.ts';
import type { Violations } from './violations.ts';

const MAX_SHOWN = 5;
/** Accounts whose balance must not become negative. */
const HOLDERS = /^(?:user|granted|provider|referral):/;

/** Checks the sums of the ledger's accounts, and that no holder of credit has spent or held more than the credit. */
export async function checkBalances(db: Database, violations: Violations): Promise<void> {
  const accounts = await db
    .selectFrom('ledger_accounts')
    .select(['id', 'credits_posted', 'debits_posted', 'debits_pending'])
    .execute();
  let sum = 0;
  for (const { id, credits_posted: credits, debits_posted: debits, debits_pending } of accounts) {
    sum += credits - debits;
    if (!HOLDERS.test(id) || credits - debits - debits_pending >= 0) continue;
    violations.report('ledger', `${id} has spent or held more than its credit`, [id]);
  }
  if (sum !== 0) violations.report('ledger', `the balances sum to ${sum} micro-dollars`, []);
}

/** Checks the whole ledger: sums, holds, and one posting for each cause. */
export async function checkLedger(db: Database, violations: Violations): Promise<string> {
  const { findings, more, hash } = await db.transaction().execute((tx) => auditLedger(tx));
  reportFindings(findings, findings.length + more, violations);
  return hash;
}

/** Reports the first findings of an audit of the ledger, out of `total`. */
export function reportFindings(
  findings: readonly Finding[],
  total: number,
  violations: Violations,
): void {
  const shown = findings.slice(0, MAX_SHOWN);
  if (shown.length === 0) return;
  const text = shown.map(({ rule, where, what }) => `${rule} ${where} ${what}`).join('; ');
  const others = total - shown.length;
  const subjects = shown.flatMap(({ where }) => where.split(' ').slice(1));
  violations.report('ledger', others > 0 ? `${text}; ${others} more` : text, subjects);
}

/**
 * Checks that no slot belongs to a pod that has ended. A failed pod keeps its GPUs until its agent confirms that it does
 * not have the pod.
 */
export async function checkSlots(db: Database, violations: Violations): Promise<void> {
  const taken = await db
    .selectFrom('gpu_slots')
    .innerJoin('pods', 'pods.id', 'gpu_slots.pod_id')
    .select(['gpu_slots.executor_id', 'gpu_slots.pod_id', 'pods.state'])
    .where('pods.ended_at', 'is not', null)
    .limit(MAX_SHOWN)
    .execute();
  for (const { executor_id: executorId, pod_id: podId, state } of taken) {
    violations.report('slot-of-pod', `a slot belongs to a pod that is ${state}`, [
      executorId,
      podId ?? '',
    ]);
  }
}

/** Checks that each charge follows from the metered time. */
export async function checkCharges(db: Database, violations: Violations): Promise<void> {
  try {
    await checkMeters(db);
  } catch (error) {
    violations.report('metered', messageOf(error), []);
  }
}

/** Checks that no pod still starts, reboots or ends. Call it some hours after the last fault and the last rental. */
export async function checkRest(db: Database, violations: Violations): Promise<void> {
  const moving = await db
    .selectFrom('pods')
    .select(['id', 'executor_id', 'state'])
    .where('state', 'in', TRANSITIONAL_STATES)
    .orderBy('id')
    .limit(MAX_SHOWN)
    .execute();
  for (const { id, executor_id: executorId, state } of moving) {
    violations.report('liveness', `a pod remains ${state} without faults`, [id, executorId]);
  }
}
