/**
 * Audits the transfers that were added since the last audit, and compares the balances of all accounts with those that
 * the journal results in. An audit of the whole journal each day would take longer each day.
 */
import { allAccounts, transfersAfter } from '../../central/money/ledger/audit.store.ts';
import { createAudit, type Finding } from '../../central/money/ledger/audit.ts';
import type { Database } from '../../central/platform/database/tables.ts';
import { reportFindings } from './database-invariants.ts';
import type { Violations } from './violations.ts';

export type LedgerFollower = (db: Database, violations: Violations) => Promise<void>;

/** Begins before the first transfer. Call the returned function with the same database each time. */
export function createLedgerFollower(): LedgerFollower {
  let findings: Finding[] = [];
  const audit = createAudit((finding) => void findings.push(finding));
  let lastSeq = 0;
  return async (db, violations) => {
    findings = [];
    const stored = await db.transaction().execute(async (tx) => {
      for await (const transfer of transfersAfter(tx, lastSeq)) {
        audit.add(transfer);
        lastSeq = transfer.seq;
      }
      return allAccounts(tx);
    });
    audit.finish(stored);
    reportFindings(findings, findings.length, violations);
  };
}
