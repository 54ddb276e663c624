/** Cost of a whole cycle of 10,000 executors in one process: checks, signed evidence, reports, and the cycle's entries. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import { createCycles } from '../../validator/weights/cycle.service.ts';
import { testSigner } from '../fakes/scenes/market-fixture.ts';
import { goldenPolicy } from '../fixtures/cycle-set.ts';
import { type Row, ratioAtMost } from '../measure/row.ts';
import { cpuSecondsOf } from './cpu-seconds.ts';
import { fleetHealth } from './fleet-health.ts';

const FLEET = 10_000;
const CYCLE_MS = 86_400_000;
const MAX_RATIO = 4;
/** Tables with a row for each executor, in the order of their references. */
const TABLES = ['evidence', 'passed_documents', 'evidence_heads', 'inspections', 'outbox'] as const;
const EXECUTOR: Partial<Record<(typeof TABLES)[number], string>> = { outbox: 'subject' };

/**
 * CPU time of one thread. The reference signs the same messages, and writes the same rows in one transaction for each
 * executor and one for the cycle, without reading or judging anything.
 */
export async function fleetCycle(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-cycle-'));
  try {
    const [from, to] = [join(folder, 'ledger.db'), join(folder, 'bare.db')];
    const messages: Uint8Array[] = [];
    const ours = await cycleSeconds(from, messages);
    await (await openEvidenceStore(to)).destroy();
    const reference = await bareSeconds({ from, to, messages });
    const measured = { ours, reference };
    const against = 'the same signatures, rows and commits';
    return [ratioAtMost(`cycle of ${FLEET} executors, CPU`, 's', against, measured, MAX_RATIO)];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function cycleSeconds(file: string, messages: Uint8Array[]): Promise<number> {
  const store = await openEvidenceStore(file);
  const own = testSigner(1);
  const signer: Signer = {
    hotkey: own.hotkey,
    sign(message) {
      messages.push(message);
      return own.sign(message);
    },
  };
  const clock = { ...systemClock, now: () => systemClock.now() + 2 * CYCLE_MS };
  const log = createLog({ name: 'bench', level: 'silent' });
  const cycles = createCycles({ store, clock, log, policy: goldenPolicy(), cycleMs: CYCLE_MS });
  const health = fleetHealth(store, { fleet: FLEET, signer });
  try {
    return await cpuSecondsOf(async () => {
      await health.runOnce();
      await cycles.closeEnded();
    });
  } finally {
    await store.destroy();
  }
}

type Bare = { from: string; to: string; messages: readonly Uint8Array[] };

/** Copies what the cycle has written, and signs what it has signed. */
async function bareSeconds({ from, to, messages }: Bare): Promise<number> {
  const source = openSqlite(from);
  const target = openSqlite(to);
  const signer = testSigner(1);
  try {
    const groups = byExecutor(source);
    const dictionaries = rowsOf(source, 'evidence_dictionaries');
    const entries = rowsOf(source, 'cycle_entries');
    const inserts = new Map(TABLES.map((table) => [table, insertInto(source, target, table)]));
    const [addDictionary, addCycle, addEntry] = [
      insertInto(source, target, 'evidence_dictionaries'),
      insertInto(source, target, 'cycles'),
      insertInto(source, target, 'cycle_entries'),
    ];
    return await cpuSecondsOf(async () => {
      for (const row of dictionaries) addDictionary(row);
      for (const message of messages) await signer.sign(message);
      for (const group of groups) {
        target.exec('begin immediate');
        for (const { table, row } of group) inserts.get(table)?.(row);
        target.exec('commit');
      }
      target.exec('begin immediate');
      for (const row of rowsOf(source, 'cycles')) addCycle(row);
      for (const row of entries) addEntry(row);
      target.exec('commit');
    });
  } finally {
    source.close();
    target.close();
  }
}

type StoredRow = Record<string, string | number | null>;
type Stored = { table: (typeof TABLES)[number]; row: StoredRow };

const rowsOf = (database: DatabaseSync, table: string): StoredRow[] =>
  database.prepare(`select * from ${table}`).all() as StoredRow[];

function byExecutor(source: DatabaseSync): Stored[][] {
  const groups = new Map<string, Stored[]>();
  for (const table of TABLES) {
    for (const row of rowsOf(source, table)) {
      const id = String(row[EXECUTOR[table] ?? 'executor_id']);
      const group = groups.get(id) ?? [];
      groups.set(id, group);
      group.push({ table, row });
    }
  }
  return [...groups.values()];
}

function insertInto(source: DatabaseSync, target: DatabaseSync, table: string) {
  const names = source.prepare(`select * from ${table} limit 0`).columns();
  const columns = names.map(({ name }) => name);
  const values = columns.map((name) => `:${name}`).join(', ');
  const statement = target.prepare(
    `insert into ${table} (${columns.join(', ')}) values (${values})`,
  );
  return (row: StoredRow): void => {
    statement.run(row);
  };
}
