/** Random postings to a money ledger from a new seed for a long time; all rules are checked after each posting. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { finding, type Row } from '../measure/row.ts';
import { createLedgerWorld } from './ledger-world.ts';

const MS_PER_MINUTE = 60_000;
/**
 * The ledger is audited after each of the first 500 postings. An audit reads all postings, so later audits are less
 * frequent.
 */
const EACH_AUDITED = 500;
const AUDITED_EVERY = 200;

/** Rejects with the number of the step when a wallet or a rule is violated. */
export async function ledgerPostings(options: {
  seed: number;
  minutes: number;
  print(line: string): void;
}): Promise<Row[]> {
  const { seed, minutes, print } = options;
  print(`random postings, seed ${seed}`);
  const folder = mkdtempSync(join(tmpdir(), 'podwright-soak-'));
  const db = await openCentralDatabase(join(folder, 'central.db'));
  try {
    const world = createLedgerWorld(db, createSeededRandom(seed));
    const untilMs = systemClock.monotonicMs() + minutes * MS_PER_MINUTE;
    let steps = 0;
    while (systemClock.monotonicMs() < untilMs) {
      await world.step();
      steps += 1;
      if (steps <= EACH_AUDITED || steps % AUDITED_EVERY === 0) await world.audit();
    }
    await world.audit();
    const name = `random postings, seed ${seed}`;
    return [finding(name, steps, '', 'every rule holds', true)];
  } finally {
    await db.destroy();
    rmSync(folder, { recursive: true, force: true });
  }
}
