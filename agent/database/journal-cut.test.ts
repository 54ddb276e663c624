import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { checkpoint, inTransaction, openSqlite } from '#shared/runtime/sqlite.ts';
import { copyWithCutJournal } from '../../test/fakes/faults/cut-journal.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import { openHome, rebuildOf, STORE_FILE } from './database.ts';

const OPENING = { nowMs: 1_795_762_800_000, sshPorts: () => ({}), openKeys: null };
const CUTS = 25;
const seed = systemRandom.int(2 ** 31);

it(`has the changes before a cut of the log, or builds the store anew (seed ${seed})`, () => {
  const random = createSeededRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), 'podwright-cut-'));
  const home = openHome(join(folder, 'home'), OPENING);
  const path = join(folder, 'home', STORE_FILE);
  const beside = openSqlite(path);
  const insert = home.database.prepare('INSERT INTO meta (name, value) VALUES (:name, :value)');
  try {
    for (let cut = 0; cut < CUTS; cut += 1) {
      inTransaction(home.database, () => {
        for (const part of ['a', 'b']) {
          insert.run({ name: `cut-${cut}-${part}`, value: 'x'.repeat(random.int(9_000)) });
        }
      });
      if (random.int(4) === 0) checkpoint(beside);
      const copy = join(folder, `copy-${cut}`);
      mkdirSync(copy);
      copyWithCutJournal(path, join(copy, STORE_FILE), random);
      writeFileSync(join(copy, `${STORE_FILE}.created`), '');
      const seen = openHome(copy, OPENING);
      const rows = seen.database.prepare(`SELECT name FROM meta WHERE name GLOB 'cut-*'`).all();
      const isNew = rebuildOf(seen.database) !== null;
      seen.close();
      const names = new Set(rows.map(({ name }) => String(name)));
      // Both rows of a transaction or none, and none after a lost one. A store that is built anew has none.
      const first = Array.from({ length: names.size / 2 }, (_, n) => [`cut-${n}-a`, `cut-${n}-b`]);
      expect(names).toEqual(new Set(isNew ? [] : first.flat()));
    }
  } finally {
    beside.close();
    home.close();
    rmSync(folder, { recursive: true });
  }
});
