/** A pod is charged up to the instant that ends it, whatever happens to it before that end is processed. */
import { afterEach, expect, it } from 'vitest';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { CONTACT_WAIT_MS } from '../../market/pods/pod-contact.ts';

/** Pays for 1,000 seconds of one pod. */
const CREDIT_UUSD = 1_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Downtime of the central API. */
const AWAY_MS = 2 * HOUR_MS;

let scene: MeteringScene;
afterEach(() => scene.close());

/** Advances the clock past the pod's end while the central API is down; then the node reports before due work runs. */
async function passEndWhileDown(): Promise<void> {
  await scene.later(MINUTE_MS);
  await scene.market.clock.advance(AWAY_MS);
  await scene.market.sync();
}

const chargedOf = async (id: string) => {
  const { charged_uusd, absorbed_uusd } = await scene.meter(id);
  return [charged_uusd, absorbed_uusd];
};

type End = { credit: number; body: Record<string, unknown>; usedMs: number };

const LIMIT: End = { credit: 10 * CREDIT_UUSD, body: { max_spend_usd: 0.3 }, usedMs: 300_000 };
const MONEY: End = { credit: CREDIT_UUSD, body: {}, usedMs: CREDIT_UUSD };
const REMOVAL: End = {
  credit: 10 * CREDIT_UUSD,
  body: { termination_hours: 1 },
  usedMs: HOUR_MS,
};

/** Creates a pod whose time has ended but whose state is still running. */
async function endedPod({ credit, body }: End): Promise<string> {
  scene = await createMeteringScene({ signupCreditUusd: credit });
  const id = await scene.running(body);
  await passEndWhileDown();
  expect((await scene.pod(id)).status).toBe('RUNNING');
  return id;
}

it.each([
  ['the time at which its spend limit was reached', LIMIT],
  ['the time at which the balance was used up', MONEY],
  ['the time of its scheduled removal', REMOVAL],
])('charges a pod up to %s if the renter deletes it after that time', async (_, end) => {
  const id = await endedPod(end);
  await scene.remove(id);
  expect(await chargedOf(id)).toEqual([end.usedMs, 0]);
  expect((await scene.meter(id)).ended_at).toBe(scene.startMs() + end.usedMs);
});

it.each([
  ['the time at which the balance was used up', MONEY],
  ['the time of its scheduled removal', REMOVAL],
])('charges a pod up to %s if the renter reboots it after that time', async (_, end) => {
  const id = await endedPod(end);
  await scene.post(id, 'reboot', {});
  await scene.later(CONTACT_WAIT_MS);
  await scene.tick();
  expect(await chargedOf(id)).toEqual([end.usedMs, 0]);
});

it('charges a pod up to its spend limit when its node later reports it as failed', async () => {
  const id = await endedPod(LIMIT);
  scene.host.change(id, { phase: 'failed', reason: 'OOMKilled', message: 'out of memory' });
  await scene.later(10_000);
  expect((await scene.pod(id)).status).toBe('FAILED');
  expect(await chargedOf(id)).toEqual([LIMIT.usedMs, 0]);
});
