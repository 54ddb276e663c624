/**
 * Records the accepted rent requests of tests, if RECORD_RENTALS names a file: one JSON line with the test file, the request
 * and the spec that the central API has built from it.
 */
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Database } from '../../../validator/central/platform/database/tables.ts';

const RENT = /^\/executors\/[^/]+\/rent$/;

export type RecordedRequest = {
  test: string;
  body: Record<string, unknown>;
  spec: Record<string, unknown>;
};

type Answered = {
  method: string;
  path: string;
  /** Body of the request. */
  sent: unknown;
  status: number;
  /** Body of the response. */
  received: unknown;
};

const OK = 200;

/** Returns null unless the environment names a file. */
export function rentalRecorder(db: Database): ((answered: Answered) => Promise<void>) | null {
  const file = process.env['RECORD_RENTALS'];
  if (file === undefined) return null;
  return async ({ method, path, sent, status, received }) => {
    if (method !== 'POST' || !RENT.test(path) || status !== OK) return;
    const { id } = received as { id: string };
    const rows = db.selectFrom('pods').select('spec_json').where('id', '=', id);
    const row = await rows.executeTakeFirst();
    if (row === undefined) return;
    const line = { test: testFile(), body: sent, spec: JSON.parse(row.spec_json) };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  };
}

/** Path of the test file that this worker runs. */
function testFile(): string {
  const { __vitest_worker__: worker } = globalThis as {
    __vitest_worker__?: { filepath?: string };
  };
  return relative(process.cwd(), worker?.filepath ?? '');
}
