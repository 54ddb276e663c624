import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { EngineError, type EngineErrorKind } from '../containers/engine/engine.ts';
import { createEgressCheckService, type TryConnection } from './egress-check.service.ts';

const EXECUTOR = '3f9f41a6-0001-4000-8000-000000000001';
const IMAGE = 'docker.io/library/hello-world:latest';

function service(fails: EngineErrorKind | null, tryConnection: TryConnection = async () => {}) {
  const engine = {
    async resolveDigest() {
      if (fails !== null) throw new EngineError(fails, 'no way');
      return 'sha256:0';
    },
  };
  const clock = createManualClock();
  return createEgressCheckService({ clock, executorId: EXECUTOR, engine, tryConnection });
}

const ask = (image = IMAGE) => ({ executor_id: EXECUTOR, image });

it.each<[EngineErrorKind | null, string]>([
  [null, 'answers'],
  ['image_rate_limited', 'answers'],
  ['image_not_found', 'answers'],
  ['image_unreachable', 'unreachable'],
  ['deadline', 'unreachable'],
  ['unavailable', 'unknown'],
])('if the engine fails with %s, reports the registry as "%s"', async (fails, registry) => {
  expect(await service(fails).check(ask())).toMatchObject({ registry });
});

it('reports a host as blocked if it cannot connect to the registry of the image', async () => {
  const hosts: string[] = [];
  const blocked = service('image_unreachable', async (host) => {
    hosts.push(host);
    throw new Error('timed out');
  });
  expect(await blocked.check(ask())).toEqual({ registry: 'blocked', problem: 'no way' });
  await blocked.check(ask('ghcr.io/me/image'));
  await blocked.check(ask('hello-world'));
  expect(hosts).toEqual(['registry-1.docker.io', 'ghcr.io', 'registry-1.docker.io']);
});

it('rejects other executors, concurrent checks and private registries', async () => {
  const egress = service(null);
  await expect(egress.check({ ...ask(), executor_id: 'x' })).rejects.toThrow('another executor');
  await expect(egress.check(ask('169.254.169.254/a'))).rejects.toThrow('private address');
  const first = egress.check(ask());
  await expect(egress.check(ask())).rejects.toThrow('in progress');
  await first;
  await egress.check(ask());
});
