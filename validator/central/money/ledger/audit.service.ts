/** Audits the stored ledger: lists every broken invariant and hashes the balances. */
import type { Db } from '../../platform/database/tables.ts';
import type { LedgerAudit } from '../../platform/ports.ts';
import { allAccounts, doubledCauses, emptyGroups, podsOfHolds } from './audit.store.ts';
import { createAudit, type Finding } from './audit.ts';
import { addAllMonths } from './month-audit.service.ts';

/** Maximum number of listed findings. */
const MAX_FINDINGS = 1_000;
/** Pod states in which an open hold is an error. */
const ENDING_STATES = ['creation_failed', 'deleting', 'deleted'];

/**
 * Audits the ledger with its archives, which are read from the recorded paths, or from `folder`. `db` must be one
 * snapshot (`readCentralDatabase`); otherwise postings look like broken invariants.
 */
export async function auditLedger(db: Db, folder: string | null = null): Promise<LedgerAudit> {
  const findings: Finding[] = [];
  let more = 0;
  const find = (finding: Finding) => {
    if (findings.length < MAX_FINDINGS) findings.push(finding);
    else more += 1;
  };
  const audit = createAudit(find);
  const transfers = await addAllMonths(db, { audit, find, folder });
  const accounts = await allAccounts(db);
  const hash = audit.finish(accounts);
  for (const id of await emptyGroups(db)) {
    find({ rule: 'I1', where: `group ${id}`, what: 'has no transfer' });
  }
  for (const { cause_type, cause_id } of await doubledCauses(db)) {
    find({ rule: 'I3', where: `cause ${cause_type} ${cause_id}`, what: 'was posted twice' });
  }
  const holds = audit.openHolds();
  for (const { hold, podId, state } of await podsOfHolds(db, holds)) {
    if (state !== null && !ENDING_STATES.includes(state)) continue;
    const what = `is open; its pod ${podId} ${state === null ? 'does not exist' : `is ${state}`}`;
    find({ rule: 'I12', where: `hold ${hold}`, what });
  }
  return { transfers, accounts: accounts.length, openHolds: holds.length, hash, findings, more };
}
