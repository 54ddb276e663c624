import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { executorId, goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import type { Ledger } from '../ledger/ledger.tables.ts';
import { openLedger } from '../ledger/ledger.ts';
import { policyHashOf } from '../weights/weight-policy.ts';
import { isJudgedRight, readDocument, signDocument } from './evidence.document.ts';
import { createEvidence, type EvidenceService } from './evidence.service.ts';
import { exportEvidence } from './evidence-export.ts';

const signer = createSigner(new Uint8Array(32).fill(1));
const CHECKS = readCheckPolicy();
const stranger = createSigner(new Uint8Array(32).fill(2));

let ledger: Ledger;
let evidence: EvidenceService;
beforeEach(async () => {
  ledger = await openLedger(':memory:');
  evidence = createEvidence({ ledger, signer, clock: systemClock, policy: goldenPolicy() });
});
afterEach(() => ledger.destroy());

const rows = () => ledger.selectFrom('evidence').selectAll().orderBy('seq').execute();

async function firstDocument() {
  const [row] = await rows();
  if (row === undefined) throw new Error('no evidence');
  const read = readDocument(row);
  if ('problem' in read) throw new Error(read.problem);
  return { row, document: read.document };
}

async function exported(executor: string | null = null) {
  const lines: string[] = [];
  const problems = await exportEvidence(ledger, executor, (line) => lines.push(line));
  return { lines, problems };
}

/** What nobody can do by the ledger's own means. */
async function tamper(change: Partial<Awaited<ReturnType<typeof rows>>[number]>, seq = 2) {
  await sql`drop trigger if exists evidence_stays_as_it_is`.execute(ledger);
  await ledger.updateTable('evidence').set(change).where('seq', '=', seq).execute();
}

describe('the document of a check run', () => {
  it('states inputs, checks, verdict, policy and times, and is signed', async () => {
    await evidence.record(checkRun({ atMs: 5_000 }));
    const { document } = await firstDocument();
    expect(document).toMatchObject({
      executor_id: executorId(1),
      seq: 1,
      previous: null,
      validator: signer.hotkey,
      policy_version: 1,
      policy_hash: policyHashOf(goldenPolicy()),
      started_at: 4_990,
      finished_at: 5_000,
      agent_version: '0.1.0',
      verdict: 'ok',
      simulated: false,
      executor: { price_uusd: 2_000_000, rented: false },
      inputs: { transport_error: null, accept_simulated: false, received_at: 5_000 },
    });
    expect(document.checks.map((check) => check.check_id)).toContain('container_start');
  });

  it.each(['ok', 'failed', 'withheld'] as const)(
    '%s gives its verdict when judged again',
    async (verdict) => {
      await evidence.record(checkRun({ atMs: 5_000, verdict }));
      const { document } = await firstDocument();
      expect([document.verdict, isJudgedRight(document, CHECKS)]).toEqual([verdict, true]);
      for (const other of ['ok', 'failed', 'withheld'] as const) {
        expect(isJudgedRight({ ...document, verdict: other }, CHECKS)).toBe(other === verdict);
      }
      expect(isJudgedRight({ ...document, checks: document.checks.slice(1) }, CHECKS)).toBe(false);
    },
  );

  it('is nobody else’s, and no other text', async () => {
    await evidence.record(checkRun({ atMs: 5_000 }));
    const { row, document } = await firstDocument();
    const forged = { ...signDocument(document, stranger), id: row.id };
    expect(readDocument(forged)).toEqual({ problem: 'its signature is not its validator’s' });
    const spaced = { ...row, document: `${row.document} ` };
    expect(readDocument(spaced)).toEqual({ problem: 'its hash is another' });
    const bare = signDocument({ ...document, v: 2 as 1 }, signer);
    expect(readDocument(bare)).toEqual({ problem: 'it is not of a known form' });
  });
});

describe('a chain', () => {
  beforeEach(async () => {
    // Together, as the health service does: each executor's documents still follow each other.
    await Promise.all([1, 2, 3, 4].map((at) => evidence.record(checkRun({ atMs: at * 1_000 }))));
    await evidence.record(checkRun({ number: 2, atMs: 9_000, verdict: 'failed' }));
  });

  it('is exported whole, each executor its own', async () => {
    const { lines, problems } = await exported();
    expect([lines.length, problems]).toEqual([5, []]);
    const documents = lines.map((line) => JSON.parse(line));
    expect(documents.map(({ document }) => JSON.parse(document).previous)).toEqual([
      null,
      ...documents.slice(0, 3).map(({ id }) => id),
      null,
    ]);
    expect((await exported(executorId(2))).lines).toEqual([lines[4]]);
  });

  it('is never changed', async () => {
    const change = ledger.updateTable('evidence').set({ verdict: 'ok' }).execute();
    await expect(change).rejects.toThrow(/never changed/);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['text', () => tamper({ document: '{}' }), 'its hash is another'],
    [
      'signature',
      () => tamper({ signature: `0x${'00'.repeat(64)}` }),
      'its signature is not its validator’s',
    ],
    [
      'executor',
      () => tamper({ executor_id: executorId(2), seq: 2 }),
      'it belongs to another place',
    ],
    [
      'gap',
      () => ledger.deleteFrom('evidence').where('seq', '=', 2).execute(),
      'it does not follow the one before',
    ],
  ])('shows a changed %s', async (_, change, problem) => {
    await change();
    const { problems } = await exported();
    expect(problems.map((found) => found.problem)).toContain(problem);
  });

  it('loses its beginning, and goes on', async () => {
    await evidence.forget(3_000);
    expect((await rows()).map((row) => [row.executor_id, row.seq])).toEqual([
      [executorId(2), 1],
      [executorId(1), 3],
      [executorId(1), 4],
    ]);
    await evidence.record(checkRun({ atMs: 10_000 }));
    expect((await exported()).problems).toEqual([]);
    await evidence.forget(20_000);
    expect(await rows()).toEqual([]);
  });
});
