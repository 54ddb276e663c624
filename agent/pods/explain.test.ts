import { beforeEach, expect, it } from 'vitest';
import { PodVerdict } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import type { Agent } from '../app.ts';
import { ProviderPolicy } from './provider-policy.ts';

const HOST = {
  sharePercent: 100,
  gpuMonitors: [],
  memoryBytes: 2 ** 33,
  memoryReserveBytes: 2 ** 30,
  cpuCores: 2,
  localRegistries: false,
  bootMs: 0,
  bootId: 'test',
};
const GHCR_ONLY = ProviderPolicy.parse({ registries: { allow: ['ghcr.io'] }, max_pods: 1 });

let agent: Agent;
beforeEach(() => {
  const clock = createManualClock();
  const host = { ...HOST, policy: GHCR_ONLY };
  agent = createTestAgent({ clock, engine: createFakeEngine(clock), host });
});

const put = (change: object) =>
  agent.server.inject({
    method: 'PUT',
    url: `/v1/pods/${systemRandom.uuid()}`,
    payload: podSpec(change),
  });

async function explain(change: object): Promise<PodVerdict> {
  const payload = podSpec(change);
  const answer = await agent.server.inject({ method: 'POST', url: '/v1/pods/explain', payload });
  return PodVerdict.parse(answer.json());
}

it('explains every rule of host and provider that a spec breaks, and stores nothing', async () => {
  const limits = { ...podSpec().limits, cpu_cores: 64 };
  const verdict = await explain({ image: { reference: 'ubuntu' }, limits });
  expect(verdict.accepted).toBe(false);
  expect(verdict.refusals).toEqual([
    { field: 'limits.cpu_cores', rule: 'host', message: 'at most 2 on this host' },
    {
      field: 'image.reference',
      rule: 'registries',
      message: 'registry docker.io is not among the allowed',
    },
  ]);
  expect(agent.pods.list()).toEqual([]);
});

it('rejects a spec with the explained field and rule', async () => {
  const answer = await put({ image: { reference: 'ubuntu' } });
  expect(answer.statusCode).toBe(400);
  expect(answer.json()).toMatchObject({
    error: {
      code: 'spec_refused',
      message: expect.stringContaining('by the provider (registries)'),
    },
    details: { field: 'image.reference', rule: 'registries' },
  });
  expect(agent.pods.list()).toEqual([]);
  expect(agent.core.leases.list('port')).toEqual([]);
});

it('enforces the provider’s limit of pods, and still accepts changes', async () => {
  const image = { reference: 'ghcr.io/a/b:1' };
  expect(await explain({ image })).toEqual({ accepted: true, refusals: [] });
  const first = await put({ image });
  expect(first.statusCode).toBe(200);
  const second = await put({ image });
  expect(second.json()).toMatchObject({
    error: { code: 'spec_refused' },
    details: { field: 'pods', rule: 'max_pods' },
  });
  expect((await explain({ image })).refusals).toEqual([
    { field: 'pods', rule: 'max_pods', message: 'no more than 1 on this host' },
  ]);
  const url = `/v1/pods/${first.json().id}`;
  const change = podSpec({ image, generation: 2 });
  expect((await agent.server.inject({ method: 'PUT', url, payload: change })).statusCode).toBe(200);
});
