/** A pod's time ends at its own instant, whatever else happens to it before somebody notes that instant. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMeteringScene, type MeteringScene } from '../../../test/fakes/metering-scene.ts';
import { CONTACT_WAIT_MS } from '../pods/pod-contact.ts';

/** What the renter has lasts 1,000 seconds of one pod. */
const CREDIT_UUSD = 1_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The central API was down for so long. */
const AWAY_MS = 2 * HOUR_MS;

let scene: MeteringScene;
afterEach(() => scene.close());

const withCredit = async (signupCreditUusd: number) => {
  scene = await createMeteringScene({ signupCreditUusd });
};

/** Nobody was there while its time ended; then its node is heard of, and what was due waits for no longer than that. */
async function missItsEnd(): Promise<void> {
  await scene.live(MINUTE_MS);
  await scene.market.clock.advance(AWAY_MS);
  await scene.market.sync();
}

const chargedOf = async (id: string) => {
  const { charged_uusd, absorbed_uusd } = await scene.meter(id);
  return [charged_uusd, absorbed_uusd];
};

type End = { credit: number; body: Record<string, unknown> };

const ENDS: [string, End, usedMs: number][] = [
  ['its limit', { credit: 10 * CREDIT_UUSD, body: { max_spend_usd: 0.3 } }, 300_000],
  ['the money', { credit: CREDIT_UUSD, body: {} }, CREDIT_UUSD],
  ['its removal', { credit: 10 * CREDIT_UUSD, body: { termination_hours: 1 } }, HOUR_MS],
];

describe.each(ENDS)('once %s has ended it', (_, { credit, body }, usedMs) => {
  let id: string;
  beforeEach(async () => {
    await withCredit(credit);
    id = await scene.running(body);
    await missItsEnd();
    expect((await scene.pod(id)).status).toBe('RUNNING');
  });

  it('is charged for no more when its renter deletes it then', async () => {
    await scene.remove(id);
    expect(await chargedOf(id)).toEqual([usedMs, 0]);
    expect((await scene.meter(id)).ended_at).toBe(scene.startMs() + usedMs);
  });

  it('is charged for no more when its renter reboots it then', async () => {
    await scene.post(id, 'reboot', {});
    await scene.later(CONTACT_WAIT_MS);
    await scene.tick();
    expect(await chargedOf(id)).toEqual([usedMs, 0]);
  });

  it('is charged for no more when its node tells then that it failed', async () => {
    scene.host.change(id, { phase: 'failed', reason: 'OOMKilled', message: 'out of memory' });
    await scene.later(10_000);
    expect((await scene.pod(id)).status).toBe('FAILED');
    expect(await chargedOf(id)).toEqual([usedMs, 0]);
  });
});
