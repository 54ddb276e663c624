import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createEmptyPostgresDatabase } from '../../test/fakes/scenes/central-database.ts';
import { createServedMarket } from '../../test/fakes/scenes/served-market.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import { moveDatabase, undoMove } from '../database/move/move-database.ts';
import { lockDatabaseFile } from '../database/open-database.ts';
import { CENTRAL_MOVE } from './move.ts';
import { openCentralDatabase } from './platform/database/database.ts';

/** 2026-11-27 07:00:00 UTC. */
const NOW_MS = 1_795_762_800_000;

it('moves a market with its ledger; an undo marks the file as restored, so that nothing is charged since the move', async () => {
  const market = await createServedMarket(
    (folder) => join(folder, 'central.db'),
    ({ verifiedNode }) => verifiedNode({ gpus: 1 }),
  );
  const { CENTRAL_DATABASE: address } = market.environment;
  await market.db.destroy();
  const source = { address, variable: 'CENTRAL_DATABASE', kind: 'central' } as const;
  const ports = {
    clock: createManualClock(NOW_MS),
    random: createSeededRandom(1),
    progress: { step: () => undefined, at: () => undefined },
  };
  try {
    const target = { address: await createEmptyPostgresDatabase(), variable: '--to' };
    const { copied, skipped } = await moveDatabase({ kind: CENTRAL_MOVE, source, target }, ports);
    expect(skipped).toEqual([]);
    expect(copied?.audit).toMatch(/^[1-9]\d* transfers, .* every rule holds$/);
    const db = await openCentralDatabase(target.address);
    const executors = await db.selectFrom('executors').select(['id', 'revision']).execute();
    expect(executors).toEqual([{ id: market.nodes.id, revision: expect.any(Number) }]);
    await db.destroy();

    await undoMove(source, ports);
    (await lockDatabaseFile(source)).close();
    const file = openSqlite(address);
    const restored = file.prepare("SELECT value FROM meta WHERE name = 'restored'").get();
    file.close();
    expect(restored?.['value']).toBe(String(NOW_MS));
  } finally {
    await market.close();
  }
});
