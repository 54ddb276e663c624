/** The central API's database as a kind of database that can be moved to PostgreSQL. */
import type { MovableKind } from '../database/move/move-database.ts';
import { auditLedger } from './money/ledger/audit.service.ts';
import { openCentralDatabase, SCHEMA, schemaOf } from './platform/database/database.ts';
import type { Database, Tables } from './platform/database/tables.ts';

export const CENTRAL_MOVE: MovableKind<Tables> = {
  kind: 'central',
  schema: SCHEMA,
  schemaOf,
  open: openCentralDatabase,
  // The database numbers the changes of nodes with its transactions.
  assigned: { executors: ['revision'] },
  audit: ledgerAudit,
};

async function ledgerAudit(db: Database): Promise<string> {
  const { transfers, accounts, openHolds, hash, findings, more } = await auditLedger(db);
  const found = findings.length + more;
  const rules = found === 0 ? 'every rule holds' : `${found} findings of ledger verify`;
  return `${transfers} transfers, ${accounts} accounts, ${openHolds} open holds, balance hash ${hash}, ${rules}`;
}
