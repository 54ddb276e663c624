import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../../../../test/fakes/eventually.ts';
import {
  createPostgresDatabase,
  onPostgres,
} from '../../../../test/fakes/scenes/central-database.ts';
import { startProgram } from '../../../../test/fakes/scenes/program-process.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import { auditLedger } from './audit.service.ts';
import { lockAccounts } from './ledger.store.ts';

it('keeps committed postings and every invariant when a process is killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-ledger-'));
  const target = onPostgres() ? await createPostgresDatabase() : join(folder, 'central.db');
  try {
    const writer = await startProgram('test/fakes/faults/ledger-writer.ts', 'ready', {
      LEDGER_DATABASE: target,
    });
    const said = () => writer.output().split('\n').slice(1, -1);
    await eventually('some postings', () => said().length > 20);
    await writer.end('SIGKILL');
    const left = await openCentralDatabase(target);
    // On PostgreSQL, the transaction of the killed process ends and releases its locks a moment later.
    await left
      .transaction()
      .execute((tx) => lockAccounts(tx, ['clearing:usage', 'external:topup']));
    const { findings } = await left.transaction().execute(auditLedger);
    expect(findings).toEqual([]);
    const groups = await left.selectFrom('ledger_groups').select('id').execute();
    const ids = new Set(groups.map(({ id }) => String(id)));
    expect(said().filter((id) => !ids.has(id))).toEqual([]);
    await left.destroy();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
