/** The validator's ledger in tests: in memory, or in the project that says so on the run's PostgreSQL. */
import type { Ledger } from '../../validator/store/ledger.tables.ts';
import { openLedger } from '../../validator/store/ledger.ts';
import { createEmptyPostgresDatabase, onPostgres } from './central-database.ts';

/** Empty, with the present schema. End it with `destroy()`. */
export async function createTestLedger(): Promise<Ledger> {
  return openLedger(onPostgres() ? await createEmptyPostgresDatabase() : ':memory:');
}
