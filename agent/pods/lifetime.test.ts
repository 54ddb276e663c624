import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { TRUSTED_CLOCK } from '../../test/fakes/trusted-clock.ts';
import { createLifetimes } from './lifetime.job.ts';

it('removes a pod when its lifetime has elapsed, and no other pod', async () => {
  const clock = createManualClock();
  const agent = createTestAgent({ clock, engine: createFakeEngine(clock) });
  const put = async (change: object): Promise<string> => {
    const id = systemRandom.uuid();
    const payload = podSpec(change);
    const answer = await agent.server.inject({ method: 'PUT', url: `/v1/pods/${id}`, payload });
    expect(answer.statusCode).toBe(200);
    return id;
  };
  const ids = [await put({ remove_after_seconds: 60 }), await put({})];
  const lifetimes = createLifetimes({
    records: agent.core.records,
    service: agent.pods,
    clock,
    trust: TRUSTED_CLOCK,
    log: createLog({ name: 'test', level: 'silent' }),
  });
  const wanted = () => ids.map((id) => agent.core.records.get(id)?.desired);
  await clock.advance(59_999);
  await lifetimes.runOnce();
  expect(wanted()).toEqual(['running', 'running']);
  await clock.advance(1);
  await lifetimes.runOnce();
  expect(wanted()).toEqual(['removed', 'running']);
  await agent.stop();
});
