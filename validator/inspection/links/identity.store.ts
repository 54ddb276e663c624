/** Queries of the keys that agents are known by. */
import type { AgentIdentitiesTable, LedgerDb } from '../../store/ledger.tables.ts';

export async function findIdentity(
  ledger: LedgerDb,
  executorId: string,
): Promise<AgentIdentitiesTable | null> {
  const query = ledger.selectFrom('agent_identities').selectAll();
  return (await query.where('executor_id', '=', executorId).executeTakeFirst()) ?? null;
}

export async function saveIdentity(ledger: LedgerDb, row: AgentIdentitiesTable): Promise<void> {
  const { executor_id: _, ...changed } = row;
  await ledger
    .insertInto('agent_identities')
    .values(row)
    .onConflict((conflict) => conflict.column('executor_id').doUpdateSet(changed))
    .execute();
}
