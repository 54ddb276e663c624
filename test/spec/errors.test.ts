/** For each row of the interface's error table, sends a request that causes it and checks code, status and body. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ERROR_TABLE } from '#shared/runtime/errors.ts';
import { DEFAULT_LIMITS } from '../../validator/central/platform/rate-limits/policies.ts';
import { createFakeBackupStorage } from '../fakes/external/fake-backup-storage.ts';
import { onPostgres } from '../fakes/scenes/central-database.ts';
import { createTestMarket } from '../fakes/scenes/market-fixture.ts';
import { REACH, REACH_IN_PARALLEL, type Scene } from './error-reach.ts';
import { ERRORS } from './errors.ts';
import { CODES_NOT_YET } from './not-yet.ts';

let scene: Scene;
beforeEach(async () => {
  const market = await createTestMarket({
    rateLimits: { ...DEFAULT_LIMITS, login: DEFAULT_LIMITS.address },
    backupStorage: createFakeBackupStorage(),
  });
  scene = { market, account: await market.renter() };
});
afterEach(() => scene.market.close());

it('every code of the interface that a client can cause has a request in this test', () => {
  const codes = ERRORS.map(([code]) => code);
  expect(Object.keys(ERROR_TABLE)).toEqual(expect.arrayContaining(codes));
  const notYet = Object.values(CODES_NOT_YET).flat();
  const reached = { ...REACH, ...REACH_IN_PARALLEL };
  expect([...Object.keys(reached), ...notYet].toSorted()).toEqual(codes.toSorted());
});

const reachableHere = onPostgres() ? { ...REACH, ...REACH_IN_PARALLEL } : REACH;
it.each(Object.entries(reachableHere))('%s', async (code, reach) => {
  const { status, headers, body } = await reach(scene);
  const [, ...statuses] = ERRORS.find(([name]) => name === code) ?? [];
  expect(body).toMatchObject({
    success: false,
    error: {
      code,
      message: expect.stringMatching(/\w/),
      hint: expect.stringMatching(/\w+ \w+/),
      request_id: body['request_id'],
    },
    status_code: status,
    error_id: status >= 500 ? body['request_id'] : null,
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/),
    api_context: null,
    validation_errors: expect.any(Array),
  });
  expect([code, statuses]).toEqual([code, expect.arrayContaining([status])]);
  expect(body['message']).toBe((body['error'] as { message: string }).message);
  if ('x-request-id' in headers) expect(headers['x-request-id']).toBe(body['request_id']);
  if (code === 'rate_limited') expect(headers['retry-after']).toBe('60');
  if (code === 'idempotency_in_progress') expect(headers['retry-after']).toBe('1');
  if (code === 'method_not_allowed') expect(headers['allow']).toBe('GET, HEAD');
});
