/** The ledger after power cuts and with a damaged write-ahead log, on SQLite. Needs root. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { checkpoint, openSqlite } from '#shared/runtime/sqlite.ts';
import { mountCutDisk } from '../../../../test/fakes/faults/cut-disk.ts';
import { copyWithCutJournal } from '../../../../test/fakes/faults/cut-journal.ts';
import { testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { lockDatabaseFile } from '../../../database/open-database.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { auditLedger } from './audit.service.ts';
import { placeHold, settleHold } from './hold.service.ts';
import { postGroup } from './ledger.service.ts';
import { paidAccount } from './wallet.service.ts';

const GROUPS = 30;
const CUTS = 40;
const seed = systemRandom.int(2 ** 31);

/** Commits one payment and one charge. Returns the id of the group after the commit. */
function post(db: Database): Promise<string> {
  return db.transaction().execute(async (tx) => {
    const amountUusd = 1_000;
    const leg = { debit: 'external:topup', credit: paidAccount('renter'), amountUusd } as const;
    const group = await postGroup(tx, [leg], testCause());
    const hold = await placeHold(tx, 'renter', amountUusd, testCause());
    await settleHold(tx, hold, 1, testCause());
    const earned = { debit: 'clearing:usage', credit: 'platform:fee', amountUusd: 1 } as const;
    await postGroup(tx, [earned], testCause());
    return String(group);
  });
}

/** Opens the database as a start does. Returns which of the groups it has, and what the audit finds. */
async function opened(address: string, groups: readonly string[]) {
  const lock = await lockDatabaseFile({ address, kind: 'central', variable: 'CENTRAL_DATABASE' });
  try {
    const db = await openCentralDatabase(address);
    const { findings } = await db.transaction().execute(auditLedger);
    const rows = await db.selectFrom('ledger_groups').select('id').execute();
    await db.destroy();
    const found = new Set(rows.map(({ id }) => String(id)));
    return { findings, has: groups.map((id) => found.has(id)) };
  } finally {
    lock.close();
  }
}

it('keeps every acknowledged transfer when the power is cut', async () => {
  const disk = mountCutDisk(64);
  const after = mkdtempSync(join(tmpdir(), 'podwright-after-'));
  const db = await openCentralDatabase(join(disk.folder, 'central.db'));
  try {
    const groups: string[] = [];
    for (let count = 1; count <= GROUPS; count += 1) {
      groups.push(await post(db));
      if (count % 10 !== 0) continue;
      disk.afterCut((folder) => cpSync(folder, join(after, String(count)), { recursive: true }));
      const seen = await opened(join(after, String(count), 'central.db'), groups);
      expect(seen).toEqual({ findings: [], has: groups.map(() => true) });
    }
  } finally {
    await db.destroy();
    disk.close();
    rmSync(after, { recursive: true });
  }
});

it(`opens the transfers before a cut of the log, or refuses the file (seed ${seed})`, async () => {
  const random = createSeededRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), 'podwright-cut-'));
  const [path, copy] = [join(folder, 'central.db'), join(folder, 'copy.db')];
  const db = await openCentralDatabase(path);
  // A second connection, as a reader of the doctor has it.
  const beside = openSqlite(path);
  try {
    const groups: string[] = [];
    let refused = 0;
    for (let cut = 0; cut < CUTS; cut += 1) {
      groups.push(await post(db));
      // After this, the file has pages that are newer than those before the cut.
      if (random.int(4) === 0) checkpoint(beside);
      copyWithCutJournal(path, copy, random);
      const seen = await opened(copy, groups).catch((error: unknown) => error);
      if (seen instanceof ConfigError) refused += 1;
      else {
        expect(seen).toMatchObject({ findings: [] });
        expect(seen).toHaveProperty('has', expect.toSatisfy(isPrefix));
      }
    }
    expect(refused).toBeLessThan(CUTS);
  } finally {
    beside.close();
    await db.destroy();
    rmSync(folder, { recursive: true });
  }
});

/** Returns true if no group follows a lost one. */
function isPrefix(has: readonly boolean[]): boolean {
  return !has.slice(has.indexOf(false)).includes(true) || !has.includes(false);
}
