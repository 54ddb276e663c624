/** The validator's ledger in tests: in memory, or in the project that says so on the run's PostgreSQL. */

import { openEvidenceStore } from '../../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../../validator/store/tables.ts';
import { createEmptyPostgresDatabase, onPostgres } from './central-database.ts';

/** Empty, with the present schema. End it with `destroy()`. */
export async function createTestStore(): Promise<EvidenceStore> {
  return openEvidenceStore(onPostgres() ? await createEmptyPostgresDatabase() : ':memory:');
}
