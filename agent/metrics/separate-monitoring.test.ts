import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createTestAgent } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import type { Agent } from '../app.ts';

let agent: Agent;
afterEach(() => agent.stop());

it('serves metrics only at the separate listener, which serves only metrics and health', async () => {
  const engine = createFakeEngine(systemClock);
  agent = createTestAgent({ engine, clock: systemClock, separateMonitoring: true });
  const main = async (url: string) => (await agent.server.inject({ url })).statusCode;
  const own = async (url: string) => (await agent.monitoring?.inject({ url }))?.statusCode;
  expect(await own('/metrics')).toBe(200);
  expect(await main('/metrics')).toBe(404);
  for (const path of ['/healthz', '/readyz', '/version']) {
    expect([await own(path), await main(path)]).toEqual([200, 200]);
  }
  for (const path of ['/v1/pods', '/v1/inventory', '/identity']) expect(await own(path)).toBe(404);
});

it('serves everything at one listener by default', async () => {
  agent = createTestAgent({ engine: createFakeEngine(systemClock), clock: systemClock });
  expect(agent.monitoring).toBeNull();
  expect((await agent.server.inject({ url: '/metrics' })).statusCode).toBe(200);
});
