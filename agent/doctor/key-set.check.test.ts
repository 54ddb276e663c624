import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { ROOT, rootA, rootB, rootKeySet, signedBy } from '../../test/fixtures/root-key-set.ts';
import { NOW_MS } from '../../test/fixtures/update-manifest.ts';
import { openDatabase, STORE_FILE } from '../database/database.ts';
import { createUpdateStore } from '../updates/update.store.ts';
import { KEY_SET_CHECKS, readKeySetFacts } from './key-set.check.ts';

const DAY_MS = 86_400_000;

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-key-set-'));
});
afterEach(() => rmSync(home, { recursive: true }));

async function judged(nowMs: number, root: typeof ROOT | null) {
  const clock = createManualClock(nowMs);
  const [found] = findingsOf(KEY_SET_CHECKS, await readKeySetFacts({ clock, home, root }));
  return [found?.status, found?.finding];
}

it('reports an agent without a key set as ok, and with AGENT_ROOT_KEYS as a warning', async () => {
  expect(await judged(NOW_MS, null)).toMatchObject([
    'ok',
    expect.stringContaining('configured keys'),
  ]);
  expect(await judged(NOW_MS, ROOT)).toMatchObject(['warn', expect.stringContaining('no update')]);
});

it.each([
  ['ok', 0, ROOT],
  ['warn', 20 * DAY_MS, ROOT],
  ['fail', 30 * DAY_MS, ROOT],
  ['warn', 0, { ...ROOT, threshold: 3 }],
])(
  'reports the accepted key set as %s after %d ms, beside a running agent',
  async (status, ms, root) => {
    const database = openDatabase(join(home, STORE_FILE));
    const store = createUpdateStore(database);
    const trust = { configured: ROOT, signed: signedBy(rootKeySet(), rootA, rootB) };
    store.put({ ...store.get(), trust });
    expect((await judged(NOW_MS + ms, root))[0]).toBe(status);
    database.close();
  },
);
