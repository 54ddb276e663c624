/** The validator's evidence store in tests: SQLite in memory, or PostgreSQL in the Vitest project `postgres`. */

import { openEvidenceStore } from '../../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../../validator/store/tables.ts';
import { createEmptyPostgresDatabase, onPostgres } from './central-database.ts';

/** Creates an empty store with the current schema. The caller must call `destroy()`. */
export async function createTestStore(): Promise<EvidenceStore> {
  return openEvidenceStore(onPostgres() ? await createEmptyPostgresDatabase() : ':memory:');
}
