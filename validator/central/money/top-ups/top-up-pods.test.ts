/** Auto top-ups and the pods that they pay for. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { setAvailable } from '../../../../test/fakes/scenes/wallet.ts';

const USD = 1_000_000;
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

let scene: MeteringScene;
beforeEach(async () => {
  scene = await createMeteringScene({ signupCreditUusd: USD, payments: 'simulated' });
});
afterEach(() => scene.close());

const put = (body: object) => scene.call('PUT', '/users/me/auto-top-up', body);
const charge = () => scene.market.central.chargeTopUps();
const charges = () => scene.db.selectFrom('topups').select('state').orderBy('created_at').execute();
const settings = { enabled: true, threshold_usd: 5, amount_usd: 5, payment_method_id: 'sim_ok' };

it('restarts a pod if another card pays within the grace period after a decline', async () => {
  const id = await scene.running();
  // Charges at once, because a pod runs.
  expect((await put({ ...settings, payment_method_id: 'sim_declined' })).body.status).toBe(
    'charging',
  );
  await charge();
  await scene.later(USD - 30_000);
  await scene.later(30_000);
  await scene.tick();
  await charge();
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', spent_usd: 1 });
  expect(new Set((await charges()).map(({ state }) => state))).toEqual(new Set(['declined']));
  await scene.later(10 * MINUTE_MS - 1);
  expect((await put({ payment_method_id: 'sim_ok' })).body.status).toBe('charging');
  await charge();
  await scene.later(1);
  await scene.later(10_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  expect((await charges()).at(-1)).toEqual({ state: 'succeeded' });
  expect((await scene.call('GET', '/users/me/auto-top-up')).body).toMatchObject({
    status: 'idle',
    month_charged_usd: 5,
    last_error: null,
  });
});

it('charges in the daily check at the threshold, without a spend', async () => {
  await scene.db.updateTable('executors').set({ price_uusd_per_gpu_hour: 3_600 }).execute();
  await setAvailable(scene.db, 5 * USD + 3_601);
  await scene.running();
  await put(settings);
  await setAvailable(scene.db, 5 * USD + 1);
  const look = async (ms: number) => {
    await scene.market.clock.advance(ms);
    await scene.market.central.runDue();
    return charges();
  };
  expect(await look(DAY_MS)).toEqual([]);
  await setAvailable(scene.db, 5 * USD);
  expect(await look(DAY_MS - 1)).toEqual([]);
  expect(await look(1)).toEqual([{ state: 'charging' }]);
});
