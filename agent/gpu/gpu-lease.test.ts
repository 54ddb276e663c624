import { expect, it } from 'vitest';
import { inTransaction } from '#shared/runtime/sqlite.ts';
import { fakeGpus } from '../../test/fakes/agents/test-agent.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { openDatabase } from '../database/database.ts';
import { createLeaseStore } from '../leases/lease.store.ts';
import { createGpuCordons } from './cordons.ts';
import { createGpuHealthStore } from './gpu-health.store.ts';
import { createGpuLeases, createGpuShare, type GpuShareRule, type GpuSource } from './gpu-lease.ts';

const OPEN: GpuShareRule = { split: 'any', minimum: 0 };

function createLeases(
  given: {
    busy?: Set<string>;
    rule?: GpuShareRule;
    source?: Partial<GpuSource>;
    database?: ReturnType<typeof openDatabase>;
  } = {},
) {
  const { busy = new Set<string>(), database = openDatabase(':memory:') } = given;
  const clock = createManualClock();
  const store = createGpuHealthStore(database);
  const gpuLeases = createGpuLeases({
    leases: createLeaseStore(database),
    gpus: { ...fakeGpus(['G1', 'G2'], busy), ...given.source },
    cordons: createGpuCordons(store),
    share: createGpuShare(given.rule ?? OPEN),
    clock,
  });
  return { database, busy, clock, store, gpuLeases };
}

it('leases all requested GPUs or none', () => {
  const { database, gpuLeases } = createLeases();
  gpuLeases.lease('a', ['G1']);
  const both = () => inTransaction(database, () => gpuLeases.lease('b', ['G2', 'G1']));
  expect(both).toThrow('GPU G1 is in use');
  expect(gpuLeases.uuidsOf('b')).toEqual([]);
  gpuLeases.lease('a', ['G1', 'G2']);
  expect(gpuLeases.uuidsOf('a')).toEqual(['G1', 'G2']);
  expect(gpuLeases.holderOf('G2')).toBe('a');
});

it('rejects a GPU that is not present, and all GPUs if they cannot be read', async () => {
  const { gpuLeases } = createLeases();
  await expect(gpuLeases.checkAdmissible('a', ['G1', 'G9'])).rejects.toThrow('no GPU G9');
  const source = { listGpus: () => Promise.reject(new Error('driver hangs')) };
  const { gpuLeases: blind } = createLeases({ source });
  const checking = blind.checkAdmissible('a', ['G1']);
  await expect(checking).rejects.toMatchObject({ code: 'gpu_unavailable' });
  await blind.checkAdmissible('a', []);
});

it('rejects new pods on a cordoned card and its MIG devices, but accepts the pod that already holds them', async () => {
  const card = { uuid: 'G1', pci_bus_id: '00000000:1B:00.0', mig: null };
  const part = { uuid: 'M1', pci_bus_id: '00000000:43:00.0', mig: { parent_uuid: 'G3' } };
  const listGpus = async () => [card, part];
  const { gpuLeases, store } = createLeases({ source: { listGpus } });
  gpuLeases.lease('a', ['G1']);
  const common = { reason: 'Xid', message: 'Xid 79', since_ms: 5 };
  store.putCordon({ subject: '0000:1b:00', source: 'xid', ...common });
  store.putCordon({ subject: 'G3', source: 'inventory', ...common });
  for (const uuid of ['G1', 'M1']) {
    await expect(gpuLeases.checkAdmissible('b', [uuid])).rejects.toMatchObject({
      code: 'gpu_unavailable',
      options: { details: { reason: 'GpuUnhealthy' } },
    });
  }
  await gpuLeases.checkAdmissible('a', ['G1']);
  store.dropCordon({ subject: 'G3', source: 'inventory' });
  await gpuLeases.checkAdmissible('b', ['M1']);
});

it('frees a GPU with processes only after two consecutive clean polls', async () => {
  const { busy, gpuLeases } = createLeases({ busy: new Set(['G1']) });
  gpuLeases.lease('a', ['G1', 'G2']);
  await gpuLeases.release('a', () => false);
  expect(gpuLeases.uuidsOf('a')).toEqual([]);
  expect(gpuLeases.holderOf('G1')).toBeNull();
  expect(gpuLeases.stateOf('G1')).toBe('dirty');
  for (const pod of ['a', 'b']) expect(() => gpuLeases.lease(pod, ['G1'])).toThrow('GpuDirty');
  gpuLeases.lease('b', ['G2']);
  expect(await gpuLeases.recheckDirty()).toEqual(['G1']);
  busy.clear();
  expect(await gpuLeases.recheckDirty()).toEqual(['G1']);
  busy.add('G1');
  expect(await gpuLeases.recheckDirty()).toEqual(['G1']);
  busy.clear();
  expect(await gpuLeases.recheckDirty()).toEqual(['G1']);
  expect(await gpuLeases.recheckDirty()).toEqual([]);
  gpuLeases.lease('b', ['G1']);
});

it('polls a real GPU twice before it is released', async () => {
  const polledUuids: string[] = [];
  const answers = [true, false];
  const isFree = async (uuid: string) => {
    polledUuids.push(uuid);
    return answers.shift() ?? true;
  };
  const { gpuLeases, clock } = createLeases({ source: { isFree, gpuMode: () => 'nvidia' } });
  gpuLeases.lease('a', ['G1']);
  const released = gpuLeases.release('a', () => false);
  // Between the polls the lease is still held, so an agent that is killed now resumes the removal later.
  await clock.advance(100);
  expect(gpuLeases.stateOf('G1')).toBe('held');
  await clock.advance(1_000);
  await released;
  expect(polledUuids).toEqual(['G1', 'G1']);
  expect(gpuLeases.stateOf('G1')).toBe('dirty');
});

it('keeps a GPU dirty over a restart of the agent, which polls it twice again', async () => {
  const { database, busy, gpuLeases } = createLeases({ busy: new Set(['G1']) });
  gpuLeases.lease('a', ['G1']);
  await gpuLeases.release('a', () => false);
  busy.clear();
  expect(await gpuLeases.recheckDirty()).toEqual(['G1']);
  const { gpuLeases: restarted } = createLeases({ database });
  expect(restarted.stateOf('G1')).toBe('dirty');
  expect(await restarted.recheckDirty()).toEqual(['G1']);
  expect(await restarted.recheckDirty()).toEqual([]);
  expect(restarted.stateOf('G1')).toBe('free');
});

it('frees dirty GPUs without polling after a reboot of the host', async () => {
  const { gpuLeases } = createLeases({ busy: new Set(['G1']) });
  gpuLeases.lease('a', ['G1', 'G2']);
  await gpuLeases.release('a', (uuid) => uuid === 'G2');
  gpuLeases.dropDirty();
  expect([gpuLeases.stateOf('G1'), gpuLeases.stateOf('G2')]).toEqual(['free', 'held']);
});

it('does not release a GPU that the pod requests again while its processes are polled', async () => {
  const { gpuLeases } = createLeases();
  gpuLeases.lease('a', ['G1']);
  let wanted = false;
  const releasing = gpuLeases.release('a', () => wanted);
  wanted = true;
  await releasing;
  expect(gpuLeases.uuidsOf('a')).toEqual(['G1']);
});

it.each<[GpuShareRule, number, string | null]>([
  [OPEN, 0, null],
  [OPEN, 1, null],
  [{ split: 'whole', minimum: 0 }, 2, null],
  [{ split: 'whole', minimum: 0 }, 1, 'gpu_split_not_allowed'],
  [{ split: 'whole', minimum: 0 }, 0, 'gpu_split_not_allowed'],
  [{ split: 'any', minimum: 2 }, 2, null],
  [{ split: 'any', minimum: 2 }, 1, 'gpu_count_invalid'],
  [{ split: 'any', minimum: 1 }, 0, 'gpu_count_invalid'],
])('the rule %j for a pod with %i of two GPUs: error %s', async (rule, count, code) => {
  const { gpuLeases } = createLeases({ rule });
  const checking = gpuLeases.checkAdmissible('a', ['G1', 'G2'].slice(0, count));
  if (code === null) await checking;
  else await expect(checking).rejects.toMatchObject({ code });
});

it('does not count cordoned and dirty cards as part of a whole host', async () => {
  const { gpuLeases, store } = createLeases({ rule: { split: 'whole', minimum: 0 } });
  store.putCordon({
    subject: 'G2',
    source: 'inventory',
    reason: 'RowRemapFailure',
    message: '',
    since_ms: 1,
  });
  await gpuLeases.checkAdmissible('a', ['G1']);
});
