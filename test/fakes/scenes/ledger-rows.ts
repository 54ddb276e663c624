/** Fills the ledger of a central API's SQLite file with many transfers that keep every invariant. */
import { inTransaction, openSqlite } from '#shared/runtime/sqlite.ts';

/** Transfers of a block: a top-up, a payment, a hold, its end, and what the provider earns by it. */
const BLOCK = 5;

/** Each transfer has a group. Of ten holds, two are voided. */
const GROUPS = `
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :transfers)
  INSERT INTO ledger_groups (id, cause_type, cause_id, is_once, actor, request_id, at_ms)
  SELECT :group + i, 'generated', 'cause-' || i, 1, 'system', CASE i % 3 WHEN 0 THEN 'request-' || i END,
    1790000000000 + i FROM n`;

const TRANSFERS = `
  WITH RECURSIVE
    n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :transfers),
    rows AS (
      SELECT i, i % ${BLOCK} AS step, (i / ${BLOCK}) % 10 < 8 AS posted,
        'user:generated-' || ((i / ${BLOCK}) % 1000) AS renter,
        'provider:generated-' || ((i / ${BLOCK}) % 77) AS provider
      FROM n)
  INSERT INTO transfers (seq, group_id, debit_id, credit_id, amount_uusd, kind, pending_seq)
  SELECT :seq + i, :group + i,
    CASE WHEN step = 0 OR (step = 4 AND NOT posted) THEN 'external:topup'
      WHEN step = 4 THEN 'clearing:usage' ELSE renter END,
    CASE WHEN step = 0 OR (step = 4 AND NOT posted) THEN renter
      WHEN step IN (1, 4) THEN provider ELSE 'clearing:usage' END,
    CASE step WHEN 0 THEN 1000000 WHEN 1 THEN 1000 + i % 997 WHEN 2 THEN 5000
      WHEN 3 THEN CASE WHEN posted THEN 4000 ELSE 5000 END
      ELSE CASE WHEN posted THEN 4000 ELSE 1 END END,
    CASE step WHEN 2 THEN 'pending' WHEN 3 THEN CASE WHEN posted THEN 'post' ELSE 'void' END ELSE 'direct' END,
    CASE step WHEN 3 THEN :seq + i - 1 END
  FROM rows`;

const BALANCES = `
  INSERT INTO ledger_accounts (id, debits_posted, credits_posted, debits_pending)
  SELECT id, sum(debit), sum(credit), 0 FROM (
    SELECT debit_id AS id, amount_uusd AS debit, 0 AS credit FROM transfers
      WHERE seq >= :seq AND kind IN ('direct', 'post')
    UNION ALL
    SELECT credit_id, 0, amount_uusd FROM transfers WHERE seq >= :seq AND kind IN ('direct', 'post'))
  WHERE true GROUP BY id
  ON CONFLICT (id) DO UPDATE SET debits_posted = debits_posted + excluded.debits_posted,
    credits_posted = credits_posted + excluded.credits_posted`;

/** Adds transfers, a multiple of five. */
export function addLedgerRows(path: string, transfers: number): void {
  if (transfers % BLOCK !== 0) throw new Error(`not a multiple of ${BLOCK}: ${transfers}`);
  const database = openSqlite(path);
  try {
    inTransaction(database, () => {
      const next = (table: string, column: string) =>
        Number(
          database.prepare(`SELECT coalesce(max(${column}), 0) + 1 AS n FROM ${table}`).get()?.[
            'n'
          ],
        );
      const [seq, group] = [next('transfers', 'seq'), next('ledger_groups', 'id')];
      database.prepare(GROUPS).run({ transfers, group });
      database.prepare(TRANSFERS).run({ transfers, group, seq });
      database.prepare(BALANCES).run({ seq });
    });
  } finally {
    database.close();
  }
}
