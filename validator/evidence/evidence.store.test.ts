import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { createSigner, type LocalSigner } from '#shared/signing/sr25519.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { executorId, goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceHeadRow, EvidenceStore } from '../store/tables.ts';
import { exportEvidence } from '../weights/evidence-export.ts';
import { policyHashOf } from '../weights/weight-policy.ts';
import { signHead } from './chain-head.ts';
import { readDocument, reproducesVerdict, signDocument } from './document.ts';
import { createEvidence, type EvidenceService } from './evidence.service.ts';
import { findEvidence } from './evidence.store.ts';

const signer = createSigner(new Uint8Array(32).fill(1));
const CHECKS = readCheckPolicy();
const stranger = createSigner(new Uint8Array(32).fill(2));

const log = createLog({ name: 'test', level: 'silent' });

/** Evidence service of a validator with the given key. */
const evidenceOf = (own: LocalSigner, trusted: readonly TrustedHotkey[] = [own]) =>
  createEvidence({
    store,
    signer: own,
    trusted,
    log,
    clock: systemClock,
    policy: goldenPolicy(),
  });

let store: EvidenceStore;
let evidence: EvidenceService;
beforeEach(async () => {
  store = await openEvidenceStore(':memory:');
  evidence = evidenceOf(signer);
});
afterEach(() => store.destroy());

const rows = () => store.selectFrom('evidence').selectAll().orderBy('seq').execute();

async function firstDocument() {
  const [{ id } = { id: '' }] = await rows();
  const row = await findEvidence(store, id);
  if (row === undefined) throw new Error('no evidence');
  const read = readDocument(row, [signer]);
  if ('problem' in read) throw new Error(read.problem);
  return { row, document: read.document };
}

async function exported(
  executorId: string | null = null,
  keys: readonly TrustedHotkey[] = [signer],
) {
  const lines: string[] = [];
  const problems = await exportEvidence(store, { executorId, keys }, (line) => lines.push(line));
  return { lines, problems };
}

const problemsNow = async (keys?: readonly TrustedHotkey[]) =>
  (await exported(null, keys)).problems.map(({ seq, problem }) => `${seq}: ${problem}`);

const remove = (...seqs: number[]) =>
  store
    .deleteFrom('evidence')
    .where('executor_id', '=', executorId(1))
    .where('seq', 'in', seqs)
    .execute();

const heads = () => store.selectFrom('evidence_heads').selectAll();

/** Bypasses the trigger that rejects updates. */
async function tamper(change: Partial<Awaited<ReturnType<typeof rows>>[number]>, seq = 2) {
  await sql`drop trigger if exists evidence_stays_as_it_is`.execute(store);
  await store.updateTable('evidence').set(change).where('seq', '=', seq).execute();
}

describe('the document of a check run', () => {
  it('contains inputs, checks, verdict, policy and times, and is signed', async () => {
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
    'yields the same verdict when judged again: %s',
    async (verdict) => {
      await evidence.record(checkRun({ atMs: 5_000, verdict }));
      const { document } = await firstDocument();
      expect([document.verdict, reproducesVerdict(document, CHECKS)]).toEqual([verdict, true]);
      for (const other of ['ok', 'failed', 'withheld'] as const) {
        expect(reproducesVerdict({ ...document, verdict: other }, CHECKS)).toBe(other === verdict);
      }
      expect(reproducesVerdict({ ...document, checks: document.checks.slice(1) }, CHECKS)).toBe(
        false,
      );
    },
  );

  it('rejects another signer and another text', async () => {
    await evidence.record(checkRun({ atMs: 5_000 }));
    const { row, document } = await firstDocument();
    const forged = { ...(await signDocument(document, stranger)), id: row.id };
    expect(readDocument(forged, [signer])).toEqual({
      problem: 'its signature is not valid',
    });
    const spaced = { ...row, document: `${row.document} ` };
    expect(readDocument(spaced, [signer])).toEqual({ problem: 'its hash does not match' });
    const bare = await signDocument({ ...document, v: 2 as 1 }, signer);
    expect(readDocument(bare, [signer])).toEqual({ problem: 'it has an unknown format' });
  });
});

describe('a stored document', () => {
  it('is packed with the first passed document of its versions, and read as it was signed', async () => {
    await evidence.record(checkRun({ atMs: 1_000, verdict: 'failed' }));
    for (const at of [2, 3]) await evidence.record(checkRun({ atMs: at * 1_000 }));
    const passed = await store.selectFrom('passed_documents').selectAll().orderBy('seq').execute();
    const stored = [...(await rows()).slice(0, 1), ...passed];
    expect(stored.map(({ dictionary }) => dictionary)).toEqual([null, 1, 1]);
    const [failed, , second] = stored.map(({ document }) => document.length);
    expect(second).toBeLessThan((failed ?? 0) / 10);
    for (const { id } of await rows()) {
      const row = await findEvidence(store, id);
      expect(sha256Hex(row?.document ?? '')).toBe(id);
    }
  });

  it('counts as altered if its dictionary was changed', async () => {
    await evidence.record(checkRun({ atMs: 1_000 }));
    await store.updateTable('evidence_dictionaries').set({ text: 'another' }).execute();
    expect((await exported()).problems).toEqual([
      expect.objectContaining({ problem: 'its hash does not match' }),
    ]);
  });
});

describe('a chain', () => {
  beforeEach(async () => {
    // Concurrently, as the health service does: each executor's documents still follow each other.
    await Promise.all([1, 2, 3, 4].map((at) => evidence.record(checkRun({ atMs: at * 1_000 }))));
    await evidence.record(checkRun({ number: 2, atMs: 9_000, verdict: 'failed' }));
  });

  it('exports every document, one chain per executor', async () => {
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

  it('rejects updates', async () => {
    const change = store.updateTable('evidence').set({ verdict: 'ok' }).execute();
    await expect(change).rejects.toThrow(/never changed/);
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['text', () => tamper({ document: '{}' }), 'its hash does not match'],
    [
      'signature',
      () => tamper({ signature: `0x${'00'.repeat(64)}` }),
      'its signature is not valid',
    ],
    [
      'executor',
      () => tamper({ executor_id: executorId(2), seq: 2 }),
      'it belongs to another executor or position',
    ],
    ['gap', () => remove(2, 3), 'all up to 3 are missing'],
    ['beginning', () => remove(1), 'it is missing'],
    ['end', () => remove(3, 4), 'all up to 4 are missing'],
  ])('detects a changed %s', async (_, change, problem) => {
    await change();
    const { problems } = await exported();
    expect(problems.map((found) => found.problem)).toContain(problem);
  });

  it('continues after its beginning was pruned', async () => {
    await evidence.prune(3_000, 0);
    expect((await rows()).map((row) => [row.executor_id, row.seq])).toEqual([
      [executorId(2), 1],
      [executorId(1), 3],
      [executorId(1), 4],
    ]);
    await evidence.record(checkRun({ atMs: 10_000 }));
    expect(await problemsNow()).toEqual([]);
    await evidence.prune(20_000, 0);
    expect([await rows(), await problemsNow()]).toEqual([[], []]);
    await evidence.record(checkRun({ atMs: 30_000 }));
    expect([(await rows()).map(({ seq }) => seq), await problemsNow()]).toEqual([[6], []]);
    // A chain that ended long ago leaves no head.
    await evidence.prune(40_000, 40_000);
    expect(await heads().execute()).toEqual([]);
  });
});

describe('the head of a chain', () => {
  beforeEach(async () => {
    for (const at of [1, 2, 3, 4]) await evidence.record(checkRun({ atMs: at * 1_000 }));
  });

  const HEADLESS = /^null: the signed head of its chain is missing or not trusted/;

  it('reveals removed documents, even after many later documents', async () => {
    await remove(4);
    await evidence.record(checkRun({ atMs: 5_000 }));
    expect((await rows()).map(({ seq }) => seq)).toEqual([1, 2, 3, 5]);
    await remove(1);
    await evidence.prune(1_500, 0);
    expect(await problemsNow()).toEqual(['1: it is missing', '4: it is missing']);
  });

  it('is created again when it is missing, and covers only later documents', async () => {
    await remove(3, 4);
    await store.deleteFrom('evidence_heads').execute();
    expect(await problemsNow()).toEqual([expect.stringMatching(HEADLESS)]);
    await evidence.record(checkRun({ atMs: 5_000 }));
    const older = 'the head of its chain was created again later and does not cover it';
    expect(await problemsNow()).toEqual([`1: ${older}`, `2: ${older}`]);
    await evidence.prune(2_500, 0);
    expect(await problemsNow()).toEqual([]);
  });

  it('rejects a replaced head, whichever key signed the new head', async () => {
    const [own] = await heads().execute();
    if (own === undefined) throw new Error('no head');
    const shorter = { ...own, last_seq: 3, last_id: (await rows())[2]?.id ?? '' };
    const put = (row: EvidenceHeadRow) => store.updateTable('evidence_heads').set(row).execute();
    await remove(4);
    for (const forged of [shorter, await signHead(shorter, stranger, 1)]) {
      await put(forged);
      expect(await problemsNow()).toEqual([expect.stringMatching(HEADLESS)]);
    }
    // An older signed head with newer rows.
    await put(own);
    await evidence.record(checkRun({ atMs: 5_000 }));
    await put(own);
    expect(await problemsNow()).toEqual([
      '5: it is newer than the last document that the head of its chain names',
      '4: it is missing',
    ]);
  });

  it('is not extended by a validator that does not trust its signer', async () => {
    await store.deleteFrom('evidence').where('seq', '>', 2).execute();
    const [own] = await heads().execute();
    if (own === undefined) throw new Error('no head');
    const { signature: _, ...claim } = own;
    const end = { last_seq: 2, last_id: (await rows())[1]?.id ?? '' };
    await store
      .updateTable('evidence_heads')
      .set(await signHead({ ...claim, ...end }, stranger, 1))
      .execute();
    await evidence.record(checkRun({ atMs: 5_000 }));
    expect((await problemsNow()).map((problem) => problem.slice(0, 2))).toEqual(['1:', '2:']);
  });

  it('is not trusted if another key rewrote the chain', async () => {
    await store.deleteFrom('evidence').execute();
    await store.deleteFrom('evidence_heads').execute();
    const theirs = evidenceOf(stranger);
    for (const at of [1, 2]) await theirs.record(checkRun({ atMs: at * 1_000 }));
    const signed = `signed by ${stranger.hotkey}, which is not trusted at`;
    expect(await problemsNow()).toEqual([
      expect.stringMatching(new RegExp(`^1: it is ${signed} 1970-01-01T00:00:01`)),
      expect.stringMatching(new RegExp(`^2: it is ${signed} `)),
      expect.stringMatching(HEADLESS),
    ]);
    expect(await problemsNow([stranger])).toEqual([]);
  });

  it('is signed by a new key while both keys are valid', async () => {
    const next = createSigner(new Uint8Array(32).fill(3));
    const keys = [{ hotkey: signer.hotkey, notAfterMs: systemClock.now() + 60_000 }, next];
    await evidenceOf(next, keys).record(checkRun({ atMs: 5_000 }));
    expect(await problemsNow(keys)).toEqual([]);
    const late = [{ hotkey: signer.hotkey, notAfterMs: 3_500 }, next];
    expect(await problemsNow(late)).toEqual([
      expect.stringMatching(/^4: it is signed by .+ not trusted at 1970-01-01T00:00:04/),
    ]);
    expect((await problemsNow([next])).length).toBe(4);
  });
});
