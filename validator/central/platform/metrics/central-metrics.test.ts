/** Metrics of requests and of the backlog, on both databases. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { readBacklog } from './backlog.job.ts';
import { createCentralMetrics } from './central-metrics.ts';

const clock = createManualClock(1_790_000_000_000);
const metrics = createCentralMetrics(clock);
let market: Awaited<ReturnType<typeof createTestMarket>>;
beforeAll(async () => {
  market = await createTestMarket({ clock, metrics });
});
afterAll(() => market?.close());

const text = async () => metrics.render();

it('counts requests by route template, errors by code, and rents by result', async () => {
  const node = await market.verifiedNode({ gpus: 2 });
  const renter = await market.renter();
  await market.server.inject({ url: '/api/nowhere/secret-words' });
  await market.server.inject({ url: `/api/pods/${node.id}` });
  const rent = { method: 'POST' as const, url: `/api/executors/${node.id}/rent`, payload: {} };
  await market.server.inject({ ...rent, headers: renter.key });
  metrics.setBacklog(await readBacklog(market.ports.db, clock));
  const told = await text();
  expect(told).toMatch(
    /^podwright_central_http_request_duration_seconds_count\{method="GET",route="none",status="404"\} 1$/m,
  );
  expect(told).toMatch(/route="\/api\/pods\/:\w+",status="401"\} 1$/m);
  expect(told).toMatch(/^podwright_central_refusals_total\{code="not_found"\} 1$/m);
  expect(told).toMatch(/^podwright_central_refusals_total\{code="unauthorized"\} 1$/m);
  expect(told).toMatch(/^podwright_central_rents_total\{result="validation_error"\} 1$/m);
  expect(told).toMatch(/^podwright_central_executors\{state="verified"\} 1$/m);
  expect(told).toMatch(/^podwright_central_gpus_free 2$/m);
  expect(told).toMatch(/^podwright_central_rents_total\{result="done"\} 0$/m);
  expect(told).toMatch(/^podwright_central_jobs_due\{kind="mail"\} 0$/m);
  expect(told).toMatch(/^podwright_central_jobs_oldest_due_seconds\{kind="mail"\} 0$/m);
  expect(told).not.toContain('secret-words');
  expect(execFileSync('promtool', ['check', 'metrics'], { input: told, encoding: 'utf8' })).toBe(
    '',
  );
});

it('does not export counts older than three intervals', async () => {
  await clock.advance(90_001);
  expect(await text()).not.toMatch(/^podwright_central_gpus_free/m);
});

it('does not serve metrics on the main listener', async () => {
  for (const url of ['/metrics', '/api/metrics']) {
    expect((await market.server.inject({ url })).statusCode).toBe(404);
  }
});
