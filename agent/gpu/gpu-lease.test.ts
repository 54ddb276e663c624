import { expect, it } from 'vitest';
import { inTransaction } from '#shared/sqlite.ts';
import { fakeGpus } from '../../test/fakes/test-agent.ts';
import { openDatabase } from '../store/database.ts';
import { createLeaseStore } from '../store/lease.store.ts';
import { createGpuLeases } from './gpu-lease.ts';

function createLeases(busy = new Set<string>()) {
  const database = openDatabase(':memory:');
  const gpus = fakeGpus(['G1', 'G2'], busy);
  return {
    database,
    busy,
    gpuLeases: createGpuLeases({ leases: createLeaseStore(database), gpus }),
  };
}

it('gives all that is asked for or nothing', () => {
  const { database, gpuLeases } = createLeases();
  gpuLeases.lease('a', ['G1']);
  const both = () => inTransaction(database, () => gpuLeases.lease('b', ['G2', 'G1']));
  expect(both).toThrow('GPU G1 is in use');
  expect(gpuLeases.uuidsOf('b')).toEqual([]);
  gpuLeases.lease('a', ['G1', 'G2']);
  expect(gpuLeases.uuidsOf('a')).toEqual(['G1', 'G2']);
  expect(gpuLeases.holderOf('G2')).toBe('a');
});

it('refuses a GPU that the host does not have, and all when they cannot be read', async () => {
  const { database, gpuLeases } = createLeases();
  await expect(gpuLeases.checkPresent(['G1', 'G9'])).rejects.toThrow('no GPU G9');
  const gpus = { ...fakeGpus(['G1']), listGpus: () => Promise.reject(new Error('driver hangs')) };
  const blind = createGpuLeases({ leases: createLeaseStore(database), gpus });
  await expect(blind.checkPresent(['G1'])).rejects.toMatchObject({ code: 'gpu_unavailable' });
  await blind.checkPresent([]);
});

it('keeps a GPU with processes from everybody until they are gone', async () => {
  const { busy, gpuLeases } = createLeases(new Set(['G1']));
  gpuLeases.lease('a', ['G1', 'G2']);
  await gpuLeases.release('a', () => false);
  expect(gpuLeases.uuidsOf('a')).toEqual([]);
  expect(gpuLeases.holderOf('G1')).toBeNull();
  for (const pod of ['a', 'b']) expect(() => gpuLeases.lease(pod, ['G1'])).toThrow('in use');
  gpuLeases.lease('b', ['G2']);
  expect(await gpuLeases.recheckDirty()).toEqual(['G1']);
  busy.clear();
  expect(await gpuLeases.recheckDirty()).toEqual([]);
  gpuLeases.lease('b', ['G1']);
});

it('keeps a GPU that is asked for again while its processes are looked for', async () => {
  const { gpuLeases } = createLeases();
  gpuLeases.lease('a', ['G1']);
  let wanted = false;
  const releasing = gpuLeases.release('a', () => wanted);
  wanted = true;
  await releasing;
  expect(gpuLeases.uuidsOf('a')).toEqual(['G1']);
});
