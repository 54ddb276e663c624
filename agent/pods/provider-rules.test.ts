import { expect, it } from 'vitest';
import { PodSpec, type PodSpecInput } from '#shared/api/agent/pod.ts';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import { NO_POLICY, ProviderPolicy } from './policy-file.ts';
import { providerRefusals } from './provider-rules.ts';

const image = (reference: string) => ({ image: { reference } });
const limits = podSpec().limits;
const rulesAgainst = (policy: object, change: Partial<PodSpecInput>) =>
  providerRefusals(PodSpec.parse(podSpec(change)), ProviderPolicy.parse(policy)).map(
    ({ field, rule }) => `${rule}: ${field}`,
  );

it('has nothing against a pod without a policy', () => {
  const spec = PodSpec.parse(podSpec({ ...image('ghcr.io/a/b:1'), entrypoint: ['/bin/sh'] }));
  expect(providerRefusals(spec, NO_POLICY)).toEqual([]);
});

it.each<[string, object, Partial<PodSpecInput>, string[]]>([
  [
    'another registry',
    { registries: { allow: ['ghcr.io'] } },
    image('ubuntu'),
    ['registries: image.reference'],
  ],
  ['an allowed registry', { registries: { allow: ['docker.io'] } }, image('ubuntu'), []],
  [
    'a denied registry under its other name',
    { registries: { deny: ['docker.io'] } },
    image('index.docker.io/a/b'),
    ['registries: image.reference'],
  ],
  [
    'what both lists name',
    { images: { allow: ['*'], deny: ['*miner*'] } },
    image('a/xminer:1'),
    ['images: image.reference'],
  ],
  ['the image of probes', { registries: { allow: [] }, images: { allow: [] } }, {}, []],
  ['more cores', { max_cpu_cores: 0.4 }, {}, ['max_cpu_cores: limits.cpu_cores']],
  ['as many cores', { max_cpu_cores: 0.5 }, {}, []],
  ['more memory', { max_memory_bytes: 2 ** 25 }, {}, ['max_memory_bytes: limits.memory_bytes']],
  ['more shared memory', { max_shm_bytes: 1 }, {}, ['max_shm_bytes: limits.shm_bytes']],
  ['more processes', { max_pids: 63 }, {}, ['max_pids: limits.pids']],
  [
    'more disk',
    { max_disk_bytes: 2 ** 30 },
    { limits: { ...limits, disk_bytes: 2 ** 31 } },
    ['max_disk_bytes: limits.disk_bytes'],
  ],
  ['a disk without limit', { max_disk_bytes: 2 ** 30 }, {}, ['max_disk_bytes: limits.disk_bytes']],
  ['more ports', { max_ports: 1 }, { internal_ports: [22, 80] }, ['max_ports: internal_ports']],
  [
    'an entrypoint',
    { allow_entrypoint: false },
    { entrypoint: ['/bin/sh'] },
    ['allow_entrypoint: entrypoint'],
  ],
  [
    'a denied variable',
    { denied_environment: ['LD_*'] },
    { environment: { LD_PRELOAD: 'x' } },
    ['denied_environment: environment'],
  ],
  ['other variables', { denied_environment: ['LD_*'] }, { environment: { OLD_PATH: 'x' } }, []],
  [
    'several at once',
    { max_ports: 0, max_pids: 16 },
    {},
    ['max_pids: limits.pids', 'max_ports: internal_ports'],
  ],
])('judges %s', (_, policy, change, expected) => {
  expect(rulesAgainst(policy, change)).toEqual(expected);
});

it('judges an image that is to be built', () => {
  const spec = PodSpec.parse(podSpec());
  const built = { ...spec, image: { ...spec.image, dockerfile: 'FROM scratch' } };
  const rules = (policy: object) => providerRefusals(built, ProviderPolicy.parse(policy));
  expect(rules({})).toEqual([]);
  expect(rules({ allow_builds: false })).toMatchObject([{ field: 'image.dockerfile' }]);
});
