/** A central API whose database file becomes damaged, or is moved, while it runs. */
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { damageTable } from '../../../../test/fakes/faults/damage-file.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createMeteringScene } from '../../../../test/fakes/scenes/metering-scene.ts';
import { openWatchedDatabase } from '../../../database/database-watch.ts';
import { openCentralDatabase } from '../database/database.ts';

const HOUR_MS = 3_600_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function openWatched() {
  const path = join(folder, 'central.db');
  const clock = createManualClock();
  const logged: string[] = [];
  const log = createLog({ name: 'test', level: 'warn' }, { write: (line) => logged.push(line) });
  const database = await openWatchedDatabase(
    {
      location: { address: path, variable: 'CENTRAL_DATABASE', kind: 'central' },
      isNew: false,
      plan: { hours: 6, keep: 2 },
      clock,
      log,
    },
    (damage) => openCentralDatabase(path, 'CENTRAL_DATABASE', { damage }),
  );
  return { path, clock, logged, database };
}

it('reports damage, and changes and charges nothing from then on', async () => {
  const { path, clock, logged, database } = await openWatched();
  const { db, health: databaseHealth } = database;
  const scene = await createMeteringScene({ db, databaseHealth, clock });
  const { server } = scene.market.central;
  const ready = async () => (await server.inject({ method: 'GET', url: '/readyz' })).json();
  const pod = await scene.running();
  await scene.live(60_000);
  await scene.tick();
  await eventually('a backup', () => readdirSync(folder).includes('database-backups'));
  await eventually('a backup', () =>
    readdirSync(join(folder, 'database-backups')).some((name) => name.endsWith('.db')),
  );
  expect(await ready()).toMatchObject({ ready: true, components: { database: { ok: true } } });

  damageTable(path, 'webhooks');
  await clock.advance(HOUR_MS);
  await eventually('the check', () => databaseHealth.damage.problem() !== null);
  const problem = databaseHealth.damage.problem();
  expect(problem).toContain(`${path} is damaged: `);
  expect(problem).toContain(`npm run central -- restore --database ${path}`);
  expect(logged.join('')).toContain(path);
  await clock.advance(1_000);
  expect(await ready()).toMatchObject({ ready: false, components: { database: { ok: false } } });
  expect(JSON.stringify(await ready())).not.toContain(folder);

  const ledger = await scene.ledger();
  const refused = await scene.call('DELETE', `/pods/${pod}`);
  expect(refused.status).toBe(503);
  expect(refused.body).toMatchObject({ error: { code: 'upstream_unavailable' } });
  await expect(scene.tick()).rejects.toThrow(/readonly/);
  expect(await scene.ledger()).toEqual(ledger);
  // Renters still read what is undamaged.
  expect((await scene.call('GET', `/pods/${pod}`)).status).toBe(200);
  await scene.close();
  await database.close();
});

it.each(['moved', 'replaced'])('changes nothing after its database file was %s', async (state) => {
  const { path, clock, logged, database } = await openWatched();
  const { db, health: databaseHealth } = database;
  const scene = await createMeteringScene({ db, databaseHealth, clock });
  const { server } = scene.market.central;
  const ready = async () => (await server.inject({ method: 'GET', url: '/readyz' })).json();
  const pod = await scene.running();
  expect(await ready()).toMatchObject({ ready: true });

  renameSync(path, `${path}.old`);
  if (state === 'replaced') writeFileSync(path, '');
  await clock.advance(1_000);
  await eventually('the check', () => databaseHealth.damage.problem() !== null);
  expect(databaseHealth.damage.problem()).toMatch(
    new RegExp(`${path} was ${state} while this process uses it. Stop the process, put the file`),
  );
  expect(logged.join('')).toContain(path);
  await clock.advance(1_000);
  expect(await ready()).toMatchObject({ ready: false, components: { database: { ok: false } } });
  const refused = await scene.call('DELETE', `/pods/${pod}`);
  expect(refused.status).toBe(503);
  await expect(scene.tick()).rejects.toThrow(/readonly/);
  expect((await scene.call('GET', `/pods/${pod}`)).status).toBe(200);
  await scene.close();
  await database.close();
});
