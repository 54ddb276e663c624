import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

let central: TestCentral;
/** Number of sleeps that have started. */
let sleeps: number;
beforeEach(async () => {
  sleeps = 0;
  const clock = createManualClock();
  central = await createTestCentral({
    clock: {
      ...clock,
      sleep(ms, signal) {
        sleeps += 1;
        return clock.sleep(ms, signal);
      },
    },
  });
});
afterEach(() => central.close());

it('the system routes return health, start time and features', async () => {
  const health = { status: 'ok', name: 'podwright', version: expect.stringMatching(/^\d/) };
  expect((await central.call('GET', '')).body).toEqual(health);
  expect((await central.call('GET', '/')).body).toEqual(health);
  await central.clock.advance(2_500);
  expect((await central.call('GET', '/version/')).body).toEqual({
    started_at: '2027-01-15T08:00:00.000000',
    uptime_seconds: 2.5,
    features: ['rent_by_spec', 'idempotent_rent'],
    version: health.version,
    hotkey: expect.stringMatching(/^5\w{47}$/),
    validator_hotkey: expect.stringMatching(/^5\w{47}$/),
    webhook_targets: 'public',
  });
});

it('the version states which addresses webhooks may have', async () => {
  const local = await createTestCentral({ webhookTargets: 'loopback' });
  try {
    expect((await local.call('GET', '/version')).body.webhook_targets).toBe('loopback');
  } finally {
    await local.close();
  }
});

it('the description has the header that reports an invalid API key, on the routes that set it', async () => {
  const { paths } = (await central.call('GET', '/openapi.json')).body;
  const headersOf = (path: string, method: string) => paths[path][method].responses['200'].headers;
  const header = { 'X-API-Key-Status': expect.objectContaining({ schema: expect.anything() }) };
  expect(headersOf('/templates', 'get')).toMatchObject(header);
  expect(headersOf('/sleep/{seconds}', 'get')).toMatchObject(header);
  expect(headersOf('/version', 'get')).toBeUndefined();
  expect(headersOf('/pods', 'get')).toBeUndefined();
});

it('GET /sleep responds after the requested time', async () => {
  const sleeping = central.call('GET', '/sleep/1.5');
  await eventually('the sleep', () => sleeps === 1);
  await central.clock.advance(1_500);
  const { status, body } = await sleeping;
  expect([status, body]).toEqual([200, { slept: 1.5 }]);
});

it.each(['-1', '30.5', 'x', 'Infinity', 'NaN'])('returns 422 for /sleep/%s', async (seconds) => {
  expect((await central.call('GET', `/sleep/${seconds}`)).status).toBe(422);
});

it('ends a sleep when the client disconnects or the server stops', async () => {
  const address = await central.server.listen({ host: '127.0.0.1', port: 0 });
  const leaving = new AbortController();
  const left = fetch(`${address}/api/sleep/30`, { signal: leaving.signal });
  await eventually('the first sleep', () => sleeps === 1);
  leaving.abort();
  await expect(left).rejects.toThrow();

  const cut = fetch(`${address}/api/sleep/30`);
  await eventually('the second sleep', () => sleeps === 2);
  await central.central.close();
  expect(await (await cut).json()).toEqual({ slept: 0 });
});
