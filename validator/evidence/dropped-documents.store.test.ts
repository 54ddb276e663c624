/** Documents of passed checks are dropped; what is left can still be verified. */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createSigner, type Signer, toHex } from '#shared/signing/sr25519.ts';
import {
  createEmptyPostgresDatabase,
  onPostgres,
} from '../../test/fakes/scenes/central-database.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { executorId, goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { exportEvidence } from '../weights/evidence-export.ts';
import { signHead } from './chain-head.ts';
import { readDocument } from './document.ts';
import { createEvidence } from './evidence.service.ts';
import { findEvidence } from './evidence.store.ts';

const signer = createSigner(new Uint8Array(32).fill(1));
const stranger = createSigner(new Uint8Array(32).fill(2));
const log = createLog({ name: 'test', level: 'silent' });
const NEVER = Number.MAX_SAFE_INTEGER;

let folder: string;
let file: string;
let store: EvidenceStore;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-dropped-'));
  file = join(folder, 'ledger.db');
  store = await openEvidenceStore(onPostgres() ? await createEmptyPostgresDatabase() : file);
});
afterEach(async () => {
  await store.destroy();
  rmSync(folder, { recursive: true });
});

const evidenceOf = (own: Signer = signer) =>
  createEvidence({
    store,
    signer: own,
    trusted: [signer],
    log,
    clock: systemClock,
    policy: goldenPolicy(),
  });

/** Records one check for each verdict; the n-th finishes after n seconds. */
async function recordAll(...verdicts: ('ok' | 'failed' | 'withheld')[]) {
  const evidence = evidenceOf();
  for (const [at, verdict] of verdicts.entries()) {
    await evidence.record(checkRun({ atMs: (at + 1) * 1_000, verdict }));
  }
}

type Line = { document: string | null; header: string | null; dropped_at?: string };

async function exported() {
  const lines: Line[] = [];
  const found = await exportEvidence(store, { executorId: null, keys: [signer] }, (line) =>
    lines.push(JSON.parse(line)),
  );
  return { lines, problems: found.map(({ seq, problem }) => `${seq}: ${problem}`) };
}

const documentsLeft = async () => (await exported()).lines.map(({ document }) => document !== null);

/** Bypasses the trigger that rejects updates. */
async function tamper(seq: number, change: Record<string, string | number | null>) {
  const table = onPostgres() ? sql` on evidence` : sql``;
  await sql`drop trigger if exists evidence_stays_as_it_is${table}`.execute(store);
  await store.updateTable('evidence').set(change).where('seq', '=', seq).execute();
}

const removeDocument = (seq: number) =>
  store.deleteFrom('passed_documents').where('seq', '=', seq).execute();

describe('dropping', () => {
  it('keeps rows and all evidence of checks that did not pass', async () => {
    await recordAll('ok', 'failed', 'ok', 'withheld', 'ok');
    const before = await store.selectFrom('evidence').selectAll().orderBy('seq').execute();
    await evidenceOf().dropPassed(4_000);
    expect(await documentsLeft()).toEqual([false, true, false, true, true]);
    expect(await store.selectFrom('evidence').selectAll().orderBy('seq').execute()).toEqual(before);
    const { lines, problems } = await exported();
    expect(problems).toEqual([]);
    expect(lines[0]).toMatchObject({
      signed_as: 'podwright-evidence-v2\n',
      document: null,
      dropped_at: expect.stringMatching(/^20/),
    });
    expect(lines[1]).not.toHaveProperty('dropped_at');
    expect(JSON.parse(lines[0]?.header ?? '')).toMatchObject({ seq: 1, verdict: 'ok', v: 2 });
  });

  it('lets the chain continue and be pruned', async () => {
    await recordAll('ok', 'ok', 'failed', 'ok');
    await evidenceOf().dropPassed(NEVER);
    await evidenceOf().record(checkRun({ atMs: 9_000 }));
    expect(await documentsLeft()).toEqual([false, false, true, false, true]);
    await evidenceOf().prune(2_500, 0);
    const { lines, problems } = await exported();
    expect([lines.length, problems]).toEqual([3, []]);
  });

  it('leaves nothing half done when it is interrupted, and continues', async () => {
    for (let at = 1; at <= 13; at += 1) {
      await evidenceOf().record(checkRun({ atMs: at * 1_000 }));
    }
    let heads = 0;
    const failing: Signer = {
      hotkey: signer.hotkey,
      sign(message) {
        heads += 1;
        if (heads === 2) throw new Error('killed');
        return signer.sign(message);
      },
    };
    await expect(evidenceOf(failing).dropPassed(NEVER, 5)).rejects.toThrow('killed');
    const left = await documentsLeft();
    expect(left.filter((isLeft) => !isLeft).length).toBe(5);
    expect((await exported()).problems).toEqual([]);
    await evidenceOf().dropPassed(NEVER, 5);
    expect(await documentsLeft()).toEqual(left.map(() => false));
    expect((await exported()).problems).toEqual([]);
  });

  it('frees space that later documents use', async () => {
    /** Size of the stored rows. On PostgreSQL, a vacuum frees the space, which the server runs by itself. */
    const size = async () => {
      if (!onPostgres()) {
        await sql`pragma wal_checkpoint(truncate)`.execute(store);
        return statSync(file).size;
      }
      await sql`vacuum`.execute(store);
      const { rows } = await sql<{ bytes: number }>`
        select pg_total_relation_size('evidence') + pg_total_relation_size('passed_documents') as bytes`.execute(
        store,
      );
      return Number(rows[0]?.bytes);
    };
    const round = async (fromMs: number) => {
      const evidence = evidenceOf();
      for (let at = 0; at < 60; at += 1) {
        await evidence.record(checkRun({ atMs: fromMs + at, gpus: 8 }));
      }
      return size();
    };
    const first = await round(1_000);
    const second = await round(10_000);
    await evidenceOf().dropPassed(NEVER);
    await size();
    const third = await round(20_000);
    expect(third - second).toBeLessThan((second - first) * 0.6);
  });
});

describe('an absent document', () => {
  const LOST = 'its document is missing';
  const UNSTATED = `${LOST}: the head of its chain does not state that it was dropped`;

  it('is missing if the signed head does not state the drop', async () => {
    await recordAll('ok', 'ok', 'ok');
    await removeDocument(2);
    expect((await exported()).problems).toEqual([`2: ${UNSTATED}`]);
    await evidenceOf().dropPassed(2_000);
    await removeDocument(3);
    // The removed document precedes the next drop, but not this one.
    expect((await exported()).problems).toEqual([`2: ${UNSTATED}`, `3: ${UNSTATED}`]);
  });

  it('is missing if the check did not pass, whatever the row and the head state', async () => {
    await recordAll('ok', 'failed', 'ok');
    await evidenceOf().dropPassed(NEVER);
    await tamper(2, { document: '', dictionary: null });
    const reason = 'it is evidence of a check that did not pass, which is never dropped';
    expect((await exported()).problems).toEqual([`2: ${LOST}: ${reason}`]);
    await tamper(2, { verdict: 'ok' });
    expect((await exported()).problems).toEqual(['2: its signature is not valid']);
  });

  it('is missing if only an altered head states the drop', async () => {
    await recordAll('ok', 'ok');
    await removeDocument(1);
    const head = await store.selectFrom('evidence_heads').selectAll().executeTakeFirstOrThrow();
    const { signature: _, ...claim } = { ...head, dropped_seq: 2, dropped_ms: 5 };
    for (const forged of [{ ...head, ...claim }, await signHead(claim, stranger, 1)]) {
      await store.updateTable('evidence_heads').set(forged).execute();
      expect((await exported()).problems).toEqual([
        `1: ${UNSTATED}`,
        expect.stringMatching(/^null: the signed head of its chain is missing or not trusted/),
      ]);
    }
  });

  it('reveals removed and altered rows as before', async () => {
    await recordAll('ok', 'ok', 'ok', 'ok');
    await evidenceOf().dropPassed(NEVER);
    await store.deleteFrom('evidence').where('seq', 'in', [1, 4]).execute();
    expect((await exported()).problems).toEqual(['1: it is missing', '4: it is missing']);
    await tamper(2, { previous: 'ab'.repeat(32) });
    await tamper(3, { finished_ms: 1 });
    expect((await exported()).problems).toEqual(
      expect.arrayContaining(['2: its signature is not valid', '3: its signature is not valid']),
    );
  });
});

describe('evidence of an older version', () => {
  /** Replaces the newest row by one as older versions stored it: the signature covers the document. */
  async function asBefore() {
    const { last_id } = await store
      .selectFrom('evidence_heads')
      .selectAll()
      .executeTakeFirstOrThrow();
    const row = await findEvidence(store, last_id);
    if (row?.document == null) throw new Error('no document');
    const text = `podwright-evidence-v1\n${row.document}`;
    const signature = toHex(signer.sign(new TextEncoder().encode(text)));
    await store.deleteFrom('evidence').where('id', '=', last_id).execute();
    const { document } = row;
    const older = { ...row, document, signature, validator: null, previous: null };
    await store.insertInto('evidence').values(older).execute();
  }

  it('is verified, is continued, and keeps its documents', async () => {
    await recordAll('ok');
    await asBefore();
    await evidenceOf().record(checkRun({ atMs: 2_000 }));
    await evidenceOf().dropPassed(NEVER);
    const { lines, problems } = await exported();
    expect(problems).toEqual([]);
    expect(lines.map(({ header, document }) => [header === null, document === null])).toEqual([
      [true, false],
      [false, true],
    ]);
    await tamper(1, { document: '' });
    expect((await exported()).problems).toEqual(['1: its document is missing']);
  });

  it('is pruned earlier, because it cannot be verified without its documents', async () => {
    await recordAll('ok');
    await asBefore();
    await evidenceOf().record(checkRun({ atMs: 2_000 }));
    await evidenceOf().prune(0, 0, NEVER);
    const { lines, problems } = await exported();
    expect([lines.length, problems]).toEqual([1, []]);
  });

  it('cannot pass for evidence of this version, or the reverse', async () => {
    await recordAll('ok', 'ok');
    const rows = await store.selectFrom('evidence').selectAll().orderBy('seq').execute();
    const row = await findEvidence(store, rows[1]?.id ?? '');
    if (row === undefined) throw new Error('no row');
    expect(readDocument(row, [signer])).toHaveProperty('document');
    expect(readDocument({ ...row, validator: null }, [signer])).toEqual({
      problem: 'its signature is not valid',
    });
    await asBefore();
    await tamper(2, { validator: signer.hotkey, previous: rows[0]?.id ?? null });
    expect((await exported()).problems).toEqual(['2: its signature is not valid']);
  });
});

it('drops nothing of a chain whose head is not trusted', async () => {
  await recordAll('ok', 'ok');
  await store
    .updateTable('evidence_heads')
    .set({ signature: `0x${'00'.repeat(64)}` })
    .execute();
  await evidenceOf().dropPassed(NEVER);
  expect(await documentsLeft()).toEqual([true, true]);
  expect((await store.selectFrom('evidence_heads').selectAll().execute())[0]).toMatchObject({
    executor_id: executorId(1),
    dropped_seq: null,
  });
});
