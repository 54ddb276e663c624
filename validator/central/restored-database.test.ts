/** A central API that starts on a restored copy of its database. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createFakeAgents } from '../../test/fakes/agents/fake-agents.ts';
import { createTestCentral } from '../../test/fakes/scenes/central-fixture.ts';
import { createMeteringScene } from '../../test/fakes/scenes/metering-scene.ts';
import { backUpFile } from '../database/database-backup.ts';
import { restoreDatabase } from '../database/restore-database.ts';
import { openCentralDatabase } from './platform/database/database.ts';

const MINUTE_MS = 60_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('charges nothing for the time from the last contact in the copy to the first contact after the restore', async () => {
  const path = join(folder, 'central.db');
  const agents = createFakeAgents();
  const before = await createMeteringScene({ db: await openCentralDatabase(path), agents });
  const { clock } = before.market;
  const pod = await before.running();
  await before.live(MINUTE_MS);
  const copy = backUpFile({ path, folder: join(folder, 'copies'), nowMs: clock.now(), keep: 1 });
  // Later the database is damaged: the renter cannot delete the pod.
  await before.live(10 * MINUTE_MS);
  await before.close();

  const location = { address: path, variable: 'CENTRAL_DATABASE', kind: 'central' } as const;
  await restoreDatabase(location, copy, clock.now());
  const db = await openCentralDatabase(path);
  const after = await createTestCentral({ db, agents, clock });
  await after.central.syncPods();
  const segments = await db
    .selectFrom('usage_segments')
    .select(['from_ms', 'to_ms', 'cause', 'is_billable'])
    .where('pod_id', '=', pod)
    .orderBy('seq')
    .execute();
  const [ran, gap, again] = segments;
  expect(ran).toMatchObject({ from_ms: before.startMs(), is_billable: 1, cause: 'running' });
  expect(gap).toMatchObject({ from_ms: ran?.to_ms, is_billable: 0, cause: 'contact_lost' });
  expect(again).toMatchObject({ from_ms: clock.now(), is_billable: 1, cause: 'running' });
  expect((ran?.to_ms ?? 0) - before.startMs()).toBeLessThanOrEqual(MINUTE_MS);
  expect((gap?.to_ms ?? 0) - (gap?.from_ms ?? 0)).toBeGreaterThanOrEqual(10 * MINUTE_MS);

  // Only the first start after the restore suspends the meters.
  await after.close();
  const reopened = await openCentralDatabase(path);
  const next = await createTestCentral({ db: reopened, agents, clock });
  const meter = await reopened.selectFrom('usage_meters').select('state').executeTakeFirstOrThrow();
  expect(meter.state).toBe('running');
  await next.close();
});
