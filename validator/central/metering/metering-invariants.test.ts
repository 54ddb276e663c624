/** Random lives of pods, silences, jumps of the clock and deletions: after every step the money adds up (marketplace reference 2.4). */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createPodScene, type PodScene } from '../../../test/fakes/pod-scene.ts';
import { createSeededRandom } from '../../../test/fakes/seeded-random.ts';
import { openHolds } from '../../../test/fakes/wallet.ts';
import { costOfSegments, providerShare } from './meter.ts';
import { spentBy } from './spent.ts';

const STEPS = 75;
const CREDIT_UUSD = 10_000_000;
const HOUR_MS = 3_600_000;

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
  await scene.market.ports.db
    .updateTable('executors')
    .set({ price_uusd_per_gpu_hour: 1_234_567 })
    .execute();
});
afterEach(() => scene.close());

async function assertInvariants(): Promise<void> {
  const { db } = scene.market.ports;
  const accounts = await db.selectFrom('ledger_accounts').selectAll().execute();
  const balances = new Map(accounts.map((row) => [row.id, row.credits_posted - row.debits_posted]));
  const sum = [...balances.values()].reduce((total, balance) => total + balance, 0);
  expect(sum, 'I1: debits are credits').toBe(0);
  for (const { id, credits_posted, debits_posted, debits_pending } of accounts) {
    if (!id.startsWith('granted:')) continue;
    expect(credits_posted - debits_posted - debits_pending, 'I2').toBeGreaterThanOrEqual(0);
  }
  const meters = await db.selectFrom('usage_meters').selectAll().execute();
  const segments = await db.selectFrom('usage_segments').selectAll().orderBy('seq').execute();
  const holds = await openHolds(db);
  for (const meter of meters) {
    const own = segments.filter(({ pod_id }) => pod_id === meter.pod_id);
    const pieces = own.map((segment) => ({
      fromMs: segment.from_ms,
      toMs: segment.to_ms,
      isBillable: segment.is_billable === 1,
      rate: { priceUusdPerGpuHour: segment.price_uusd_per_gpu_hour, gpus: segment.gpu_count },
    }));
    const untilMs = meter.settled_to_ms;
    expect(meter.charged_uusd, 'I5, I9').toBe(costOfSegments(pieces, untilMs).uusd);
    expect(meter.provider_uusd, 'I6').toBe(providerShare(meter.charged_uusd));
    for (const [index, piece] of own.entries()) {
      if (index > 0) expect(piece.from_ms, 'I7').toBe(own[index - 1]?.to_ms);
    }
    expect(own.at(-1)?.to_ms, 'I7, I10').toBe(meter.ended_at);
    const billable = own.map(({ is_billable, state }) => [is_billable === 1, state]);
    for (const [is, state] of billable)
      expect(is).toBe(state === 'running' || state === 'rebooting');
  }
  const spent = meters.reduce((total, meter) => total + spentBy(meter), 0);
  const granted = balances.get(`granted:${scene.account.id}`) ?? 0;
  expect(CREDIT_UUSD - granted, 'what is shown is what was taken').toBe(spent);
  const given = [...balances].filter(([id]) => id.startsWith('provider:') || id === 'platform:fee');
  const absorbed = -(balances.get('platform:absorbed') ?? 0);
  const earned = given.reduce((total, [, balance]) => total + balance, 0);
  expect(spent + absorbed, 'I8: renters pay what providers and platform get').toBe(earned);
  for (const id of ['clearing:usage', 'clearing:refund']) expect(balances.get(id) ?? 0).toBe(0);
  const ended = await db.selectFrom('pods').selectAll().where('ended_at', 'is not', null).execute();
  for (const { hold_id } of ended) expect(holds.has(String(hold_id)), 'I12').toBe(false);
}

it.each([1, 2, 3, 4])('adds up whatever happens, seed %i', async (seed) => {
  const random = createSeededRandom(seed);
  const { clock, central } = scene.market;
  const live: string[] = [];
  const any = () => live[random.int(live.length)] ?? '';
  const steps: (() => Promise<unknown>)[] = [
    async () => {
      const limit = random.int(4) === 0 ? { max_spend_usd: 0.01 + random.int(50) / 100 } : {};
      const body = { gpu_count: 1, ...limit };
      const rented = await scene.market.rent(scene.account, scene.node.id, body);
      if (rented.status === 200) live.push(rented.body.id);
    },
    () => scene.later(1 + random.int(60_000)),
    () => scene.later(1 + random.int(60_000)),
    () => clock.advance(random.int(20 * 60_000)),
    () => clock.advance(-random.int(10 * 60_000)),
    () => central.meterPods(),
    () => central.meterPods(),
    async () => {
      scene.host.up = random.int(3) > 0;
    },
    () => scene.remove(any()),
    () => scene.post(any(), 'reboot', {}),
    async () => {
      for (const view of scene.host.pods.values()) {
        const [requested, phases] = [
          view.reboots_requested,
          ['running', 'running', 'failed'] as const,
        ];
        const phase = phases[random.int(phases.length)] ?? 'running';
        scene.host.change(view.id, { phase, reboots_done: requested });
      }
    },
    () => (random.int(8) === 0 ? clock.advance(3 * HOUR_MS) : scene.later(1_000)),
  ];
  for (let step = 0; step < STEPS; step += 1) {
    await steps[random.int(steps.length)]?.();
    await assertInvariants();
  }
  scene.host.up = true;
  await scene.later(60_000);
  await central.meterPods();
  await assertInvariants();
});
