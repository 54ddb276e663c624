/** Reports on pods at the central API: who may report, limits, claims, signed outcomes and refunds. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ReportOutcome, signReport } from '#shared/api/central/pod-reports.ts';
import { testSigner } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { auditLedger } from '../../money/ledger/audit.service.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const OTHER = testSigner(8);
const REASON = { reason: 'less_memory' };

let scene: PodScene;
beforeEach(async () => {
  const validators = [testSigner(1).hotkey, OTHER.hotkey];
  scene = await createPodScene({ validators, signupCreditUusd: 1_000_000_000 });
});
afterEach(() => scene.close());

/** A pod that has run for a time, of which every hour is charged. */
async function usedPod(ms = HOUR_MS): Promise<string> {
  const id = await scene.running();
  await use(ms);
  return id;
}

async function use(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= HOUR_MS) {
    await scene.market.clock.advance(Math.min(left, HOUR_MS));
    await scene.market.sync();
  }
  await scene.market.central.meterPods();
}

const report = (podId: string, body: object = REASON) => scene.post(podId, 'report', body);
const reports = async (query = '') => (await scene.call('GET', `/pod-reports${query}`)).body;
const balance = async (): Promise<number> => (await scene.call('GET', '/users/me')).body.balance;

async function claim(signer = testSigner(1)) {
  await scene.market.clock.advance(1_000);
  return (await scene.market.asValidator('/pod-reports', {}, signer)).body;
}

type Change = { signer?: typeof OTHER; id?: string; signature?: string };

async function conclude(
  { id, pod_id, executor_id }: { id: string; pod_id: string; executor_id: string },
  outcome: ReportOutcome,
  { signer = testSigner(1), id: path = id, signature }: Change = {},
) {
  await scene.market.clock.advance(1_000);
  const at = scene.market.clock.now();
  const subject = { v: 1 as const, report_id: id, pod_id, executor_id };
  const findings = [
    { means: 'test_rental' as const, at, step: 'inside', shortfall: '1 of 2 cards' },
  ];
  const signed = await signReport(
    { ...subject, validator: signer.hotkey, examined_at: at, outcome, findings },
    signer,
  );
  const body = { ...signed, ...(signature === undefined ? {} : { signature }) };
  const send = () => scene.market.asValidator(`/pod-reports/${path}/outcome`, body, signer);
  return { answer: await send(), body, send };
}

const findingsOfLedger = async () =>
  (await scene.market.ports.db.transaction().execute(auditLedger)).findings;

describe('a report', () => {
  it('is stored once for a pod that has run, and only by its renter', async () => {
    const podId = await scene.rentOne();
    expect((await report(podId)).body.error.code).toBe('pod_state_conflict');
    await scene.market.sync();
    const stranger = await scene.market.renter();
    const foreign = await scene.market.call('POST', `/pods/${podId}/report`, {
      headers: stranger.key,
      body: REASON,
    });
    expect([foreign.status, foreign.body.error.code]).toEqual([404, 'pod_not_found']);
    const stored = await report(podId, { ...REASON, description: 'free shows 8 GiB' });
    expect(stored).toMatchObject({
      status: 201,
      body: { pod_id: podId, status: 'open', consent: false, refund: 0, evidence: null },
    });
    expect((await report(podId)).body.error.code).toBe('conflict');
    expect(await reports()).toEqual([stored.body]);
    expect(await reports(`?pod_id=${stored.body.id}`)).toEqual([]);
    expect(
      (await scene.market.call('GET', '/pod-reports', { headers: stranger.key })).body,
    ).toEqual([]);
    expect((await report(podId, { reason: 'unknown' })).status).toBe(422);
  });

  it('is accepted for three days after the end of the pod', async () => {
    const podId = await usedPod();
    await scene.remove(podId);
    await scene.market.sync();
    await scene.market.clock.advance(3 * DAY_MS + 1_000);
    expect((await report(podId)).body.error.code).toBe('pod_state_conflict');
  });

  it('is rejected after three reports on one node in a week', async () => {
    const podId = await usedPod();
    for (let count = 0; count < 3; count += 1) {
      expect((await report(podId)).status).toBe(201);
      const [claimed] = await claim();
      await conclude(claimed, 'undecided');
    }
    const refused = await report(podId);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
  });

  it('expires after 14 days, or after five examinations that could not be made', async () => {
    const podId = await usedPod();
    await report(podId);
    await scene.market.clock.advance(14 * DAY_MS);
    await scene.market.central.runDue();
    expect(await reports()).toMatchObject([{ status: 'expired', refund: 0 }]);
    expect((await scene.events(podId)).at(-1).detail).toBe('pod_report_expired');
    await scene.market.clock.advance(8 * DAY_MS);
    expect((await report(podId)).status).toBe(201);
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const [claimed] = await claim();
      const { answer } = await conclude(claimed, 'unexamined');
      expect(answer.body.status).toBe(attempt < 5 ? 'open' : 'expired');
    }
    expect(await claim()).toEqual([]);
  });
});

describe('an outcome', () => {
  it('counts only if the claimant signed it for this report', async () => {
    await report(await usedPod(), { ...REASON, consent: true });
    const [claimed] = await claim();
    expect(claimed).toMatchObject({
      may_enter: true,
      reason: 'less_memory',
      offer: { gpu_count: 1 },
    });
    expect(await claim(OTHER)).toEqual([]);
    const statusOf = async (change: Change) =>
      (await conclude(claimed, 'confirmed', change)).answer.status;
    expect(await statusOf({ signer: OTHER })).toBe(403);
    expect(await statusOf({ signature: `0x${'00'.repeat(64)}` })).toBe(422);
    expect(await statusOf({ id: claimed.pod_id })).toBe(422);
    expect((await reports())[0].status).toBe('examining');
    await scene.market.clock.advance(HOUR_MS);
    // The claim has ended.
    expect(await claim(OTHER)).toHaveLength(1);
    expect(await statusOf({})).toBe(403);
    expect(await statusOf({ signer: OTHER })).toBe(200);
  });

  it('refunds the last day of charges once, from the provider and the fee', async () => {
    const podId = await usedPod(30 * HOUR_MS);
    const before = await balance();
    const { total } = (await scene.call('GET', `/pods/${podId}/statement`)).body;
    await report(podId);
    const [claimed] = await claim();
    const { answer, body, send } = await conclude(claimed, 'confirmed');
    const day = (total * 24) / 30;
    expect(answer).toMatchObject({ status: 200, body: { status: 'confirmed' } });
    expect(answer.body.refund).toBeCloseTo(day, 1);
    await scene.market.clock.advance(1_000);
    expect((await send()).body).toEqual(answer.body);
    expect((await balance()) - before).toBeCloseTo(answer.body.refund, 2);
    expect(await findingsOfLedger()).toEqual([]);
    const [row] = await reports();
    expect(row).toMatchObject({ finding: '1 of 2 cards', evidence: body });
    const { refunded } = (await scene.call('GET', `/pods/${podId}/statement`)).body;
    expect(refunded).toBeCloseTo(answer.body.refund, 6);
    expect((await report(podId)).body.error.code).toBe('conflict');
    // The pod still runs, and its later use is charged.
    await use(HOUR_MS);
    await scene.remove(podId);
    await scene.market.sync();
    await scene.market.central.meterPods();
    const later = (await scene.call('GET', `/pods/${podId}/statement`)).body;
    expect(later.total + later.refunded).toBeGreaterThan(total);
    expect(await findingsOfLedger()).toEqual([]);
  });

  it('that does not confirm the report refunds nothing, and three of them stop an account for 30 days', async () => {
    const podId = await usedPod();
    const before = await balance();
    for (let week = 0; week < 3; week += 1) {
      expect((await report(podId)).status).toBe(201);
      const [claimed] = await claim();
      expect((await conclude(claimed, 'not_confirmed')).answer.body.refund).toBe(0);
    }
    await scene.remove(podId);
    await scene.market.sync();
    expect(await balance()).toBeLessThanOrEqual(before);
    await scene.market.clock.advance(8 * DAY_MS);
    const later = await usedPod();
    const refused = await report(later);
    expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(20 * 86_400);
  });

  it('of a removed account changes nothing', async () => {
    const podId = await usedPod();
    await report(podId);
    const [claimed] = await claim();
    await scene.remove(podId);
    await scene.market.sync();
    const { session: headers } = scene.account;
    const removed = await scene.market.call('DELETE', '/users/me', { headers });
    expect(removed.status).toBeLessThan(300);
    expect((await conclude(claimed, 'confirmed')).answer.status).toBe(403);
    expect(await findingsOfLedger()).toEqual([]);
  });
});
