import { afterEach, beforeEach, expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import {
  type ChangingPod,
  createChangingPod,
  ID,
  PROVEN_MS,
} from '../../../test/fakes/agents/changing-pod.ts';
import { specHash } from '../../pods/pod-row.ts';
import { LABELS } from '../engine/engine.ts';
import { volumeName } from './pod-volumes.ts';

let pod: ChangingPod;
beforeEach(() => {
  pod = createChangingPod();
});
afterEach(() => pod.agent().stop());

const names = () => [...pod.engine.volumes.keys()].toSorted();
const mountsOf = (containerId: string | null) =>
  pod.engine.containers
    .get(containerId ?? '')
    ?.spec.volumes?.map(({ name, target }) => [name, target]);
const DATA = volumeName(ID, '/data');
const WORK = volumeName(ID, '/work');

it('creates a labelled volume for each path', async () => {
  const { container_id } = await pod.launched({ volumes: ['/data/', '/work'] });
  expect(names()).toEqual([DATA, WORK].toSorted());
  expect(pod.engine.volumes.get(DATA)?.labels).toMatchObject({
    [LABELS.managed]: '1',
    [LABELS.kind]: 'pod',
    [LABELS.pod]: ID,
    [LABELS.mountPath]: '/data',
  });
  expect(mountsOf(container_id)).toEqual([
    [DATA, '/data'],
    [WORK, '/work'],
  ]);
});

it('keeps a volume whose path one edit removes and a later edit adds again; removes every volume with the pod', async () => {
  await pod.launched({ volumes: ['/data'] });
  const made = pod.engine.volumes.get(DATA);
  await pod.put(2, { volumes: ['/work'] });
  await pod.pass(PROVEN_MS);
  expect(mountsOf(pod.view().container_id)).toEqual([[WORK, '/work']]);
  expect(names()).toEqual([DATA, WORK].toSorted());
  await pod.put(3, { volumes: ['/data'] });
  await pod.pass(PROVEN_MS);
  expect(pod.view()).toMatchObject({ observed_generation: 3, change: null });
  expect(mountsOf(pod.view().container_id)).toEqual([[DATA, '/data']]);
  expect(pod.engine.volumes.get(DATA)).toBe(made);

  await pod.agent().pods.remove(ID);
  await pod.pass(PROVEN_MS);
  expect([pod.view().phase, names()]).toEqual(['removed', []]);
});

it('recreates a removed volume, and does not mount a volume of another owner', async () => {
  await pod.engine.createVolume(DATA, { [LABELS.pod]: ID });
  await pod.put(1, { volumes: ['/data'] });
  await pod.settle();
  expect(pod.view()).toMatchObject({ phase: 'quarantined', reason: 'NameTaken' });
  expect(pod.containers()).toEqual([]);
  await pod.engine.removeVolume(DATA);
  await pod.put(2, { volumes: ['/data'] });
  await pod.pass(PROVEN_MS);
  expect(pod.view().phase).toBe('running');
  expect(names()).toEqual([DATA]);
});

it('completes the removal of a pod only after its volumes are removed', async () => {
  await pod.launched({ volumes: ['/data'] });
  const mend = pod.breakNew('removeVolume', 'conflict');
  await pod.agent().pods.remove(ID);
  await pod.pass(PROVEN_MS);
  expect(pod.view().phase).toBe('removing');
  mend();
  await pod.pass(PROVEN_MS);
  expect([pod.view().phase, names()]).toEqual(['removed', []]);
});

it.each([[['data']], [['/data', '/data/']], [['/proc/1']], [['/\ud800']]])(
  'rejects the volume paths %j',
  async (volumes) => {
    await expect(pod.put(1, { volumes })).rejects.toMatchObject({
      code: 'spec_refused',
      message: expect.stringContaining('volumes is refused'),
    });
    expect(() => pod.view()).toThrow();
  },
);

it('computes the same hash as earlier versions for a spec without volumes', () => {
  const limits = { cpu_cores: 1, memory_bytes: 2 ** 30, shm_bytes: 0, pids: 64 };
  const image = { reference: 'ubuntu:24.04' };
  const spec = PodSpec.parse({ generation: 1, image, limits });
  expect(specHash(spec)).toBe('05a44a7a9c8bf9291a0800531de160ea0a1608f6311fcfb61f03191a00a62bbe');
  expect(specHash({ ...spec, volumes: ['/data'] })).not.toBe(specHash(spec));
});
