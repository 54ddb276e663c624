import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { kernelLine, XID_13, XID_79 } from '../../test/fixtures/kernel-log.ts';
import { openDatabase } from '../database/database.ts';
import { cordonOf } from './cordons.ts';
import type { GpuDriver, GpuFault, HealthReading } from './gpu-driver.ts';
import { createGpuHealthJob } from './gpu-health.job.ts';
import { createGpuHealthStore } from './gpu-health.store.ts';
import { type CardHealth, faultOf } from './nvidia/card-health.ts';
import { type KernelRecord, parseKernelRecord } from './xid.ts';

const BOOT_MS = 1_000_000;
const CARD = { uuid: 'GPU-a', pci_bus_id: '00000000:1B:00.0', mig: null };
const SOUND: CardHealth = {
  uncorrectableErrors: 0,
  sramThresholdExceeded: 'No',
  rowRemapPending: 'No',
  rowRemapFailure: 'No',
  retirementPending: null,
  unrepairableMemory: 'N/A',
  channelRepairPending: 'No',
  unitRepairPending: null,
  recoveryAction: null,
};

function reading(fault: GpuFault | null = null): HealthReading {
  const other = { uuid: 'GPU-b', pciBusId: '00000000:43:00.0', fault: null };
  return { cards: [{ uuid: 'GPU-a', pciBusId: CARD.pci_bus_id, fault }, other], migDevices: [] };
}

/** Creates a health job on `database`. A second call with the same database simulates a restart of the agent. */
function setUp(database = openDatabase(':memory:'), bootId = 'boot-1') {
  const clock = createManualClock();
  const store = createGpuHealthStore(database);
  const state = {
    health: reading() as HealthReading | null,
    lines: [] as string[],
    leased: ['GPU-a'],
    reboots: 0,
  };
  const driver: GpuDriver = {
    kind: 'nvidia',
    read: () => Promise.reject(new Error('not asked')),
    health: async () => state.health,
    isFree: async () => true,
  };
  const records = () => state.lines.splice(0).map(parseKernelRecord);
  const job = createGpuHealthJob({
    driver,
    store,
    database,
    clock,
    bootId,
    log: createLog({ name: 'test', level: 'silent' }),
    kernelLog: {
      read: () => records().filter((record): record is KernelRecord => record !== null),
      close: () => undefined,
    },
    bootMs: () => BOOT_MS,
    leasedUuids: () => state.leased,
    onReboot: () => {
      state.reboots += 1;
    },
    holderOf: (uuid) => (uuid === 'GPU-a' ? 'pod' : null),
  });
  const cordon = (device: typeof CARD = CARD) => cordonOf(device, store.cordons());
  return { database, clock, store, state, job, cordon };
}

it.each<[Partial<CardHealth>, string | null]>([
  [{}, null],
  [{ uncorrectableErrors: null, rowRemapPending: null, rowRemapFailure: null }, null],
  [{ uncorrectableErrors: 2 }, 'UncorrectableEcc'],
  [{ sramThresholdExceeded: 'Yes' }, 'SramThresholdExceeded'],
  [{ rowRemapPending: 'Yes' }, 'RowRemapPending'],
  [{ rowRemapFailure: 'Yes', rowRemapPending: 'Yes' }, 'RowRemapFailure'],
  [{ retirementPending: 'Yes' }, 'RowRemapPending'],
  [{ unrepairableMemory: 'Yes' }, 'UncorrectableEcc'],
  [{ channelRepairPending: 'Yes' }, 'RowRemapPending'],
  [{ unitRepairPending: 'Yes' }, 'RowRemapPending'],
  [{ recoveryAction: 'Reset' }, 'RecoveryActionNeeded'],
  [{ recoveryAction: 'GPU Reset' }, 'RecoveryActionNeeded'],
  [{ recoveryAction: 'Node Reboot' }, 'RecoveryActionNeeded'],
  [{ recoveryAction: 'Drain and Reset' }, 'RecoveryActionNeeded'],
  [{ recoveryAction: 'Drain P2P' }, 'RecoveryActionNeeded'],
  [{ recoveryAction: 'None' }, null],
  [{ recoveryAction: '0' }, null],
  [{ recoveryAction: '2' }, 'RecoveryActionNeeded'],
])('derives from the health values %j the fault %s', (change, reason) => {
  expect(faultOf({ ...SOUND, ...change })?.reason ?? null).toBe(reason);
});

it.each([
  ['GPU Reset', /nvidia-smi --gpu-reset -i/],
  ['Drain and Reset', /let the pods on the card end, then run nvidia-smi --gpu-reset/],
  ['Node Reboot', /reboot the host/],
  ['Drain P2P', /NVLink or peer-to-peer/],
  ['Bus Reset', /documentation of NVIDIA's driver/],
])('names a remedy for the recovery action %s', (recoveryAction, remedy) => {
  const message = faultOf({ ...SOUND, recoveryAction })?.message;
  expect(message).toContain(`the driver requests: ${recoveryAction}; remedy: `);
  expect(message).toMatch(remedy);
});

it('cordons a MIG device that shares memory, and the other devices not', async () => {
  const { job, state, cordon } = setUp();
  const fault: GpuFault = { reason: 'MemoryShared', message: 'shared' };
  const migDevices = [
    { uuid: 'MIG-1', fault },
    { uuid: 'MIG-2', fault: null },
  ];
  state.health = { ...reading(), migDevices };
  await job.runOnce();
  const device = { ...CARD, mig: null };
  expect(cordon({ ...device, uuid: 'MIG-1' })).toMatchObject({ reason: 'MemoryShared' });
  expect(cordon({ ...device, uuid: 'MIG-2' })).toBeNull();
  state.health = { ...reading(), migDevices: [{ uuid: 'MIG-1', fault: null }] };
  await job.runOnce();
  expect(cordon({ ...device, uuid: 'MIG-1' })).toBeNull();
});

it('cordons a card while the driver reports a fault, with the time of the first report', async () => {
  const { job, state, clock, cordon } = setUp();
  await job.runOnce();
  expect(cordon()).toBeNull();
  const sinceMs = clock.now();
  state.health = reading({ reason: 'UncorrectableEcc', message: '1 error' });
  await job.runOnce();
  await clock.advance(30_000);
  state.health = reading({ reason: 'UncorrectableEcc', message: '2 errors' });
  await job.runOnce();
  expect(cordon()).toMatchObject({ message: '2 errors', since_ms: sinceMs });
  expect(cordon({ ...CARD, uuid: 'GPU-b', pci_bus_id: '00000000:43:00.0' })).toBeNull();
  state.health = null;
  await job.runOnce();
  expect(cordon()).not.toBeNull();
  state.health = reading();
  await job.runOnce();
  expect(cordon()).toBeNull();
});

it('reports as lost a missing card that answered since the boot, and a missing MIG device that is leased', async () => {
  const { job, state, cordon, database } = setUp();
  await job.runOnce();
  state.leased = ['MIG-1'];
  state.health = { cards: reading().cards.slice(1), migDevices: [] };
  await job.runOnce();
  expect(cordon()).toMatchObject({ reason: 'Lost' });
  expect(cordon({ ...CARD, uuid: 'MIG-1', pci_bus_id: '' })).toMatchObject({ reason: 'Lost' });
  // The cordon survives a restart of the agent. It ends when the card returns or the host reboots without the card.
  const restarted = setUp(database);
  restarted.state.health = state.health;
  await restarted.job.runOnce();
  expect(restarted.cordon()).toMatchObject({ reason: 'Lost' });
  restarted.state.health = reading();
  await restarted.job.runOnce();
  expect(restarted.cordon()).toBeNull();
  const rebooted = setUp(database, 'boot-2');
  rebooted.state.health = { cards: reading().cards.slice(1), migDevices: [] };
  rebooted.state.leased = [];
  await rebooted.job.runOnce();
  expect(rebooted.cordon()).toBeNull();
});

it('cordons a card by its Xid until the host is rebooted', async () => {
  const { job, state, cordon, store, database } = setUp();
  await job.runOnce();
  state.lines = [kernelLine(1, 'booted'), kernelLine(2, XID_79)];
  job.readKernelLog();
  expect(cordon()).toMatchObject({ reason: 'Xid', since_ms: BOOT_MS + 2_000 });
  expect(store.xids('0000:1b:00', 0, Infinity)).toMatchObject([{ code: 79, pod_id: 'pod' }]);
  const restarted = setUp(database);
  await restarted.job.runOnce();
  expect(restarted.cordon()).not.toBeNull();
  const rebooted = setUp(database, 'boot-2');
  rebooted.job.readKernelLog();
  expect(rebooted.cordon()).toBeNull();
  rebooted.job.readKernelLog();
  expect([restarted.state.reboots, rebooted.state.reboots]).toEqual([0, 1]);
});

it('records each Xid once, even if it is read again after a restart', async () => {
  const { job, state, store, database } = setUp();
  state.lines = [kernelLine(5, XID_13)];
  job.readKernelLog();
  const restarted = setUp(database);
  restarted.state.lines = [kernelLine(5, XID_13), kernelLine(6, XID_13)];
  restarted.job.readKernelLog();
  const sequences = store.xids('0000:1b:00', 0, Infinity).map(({ sequence }) => sequence);
  expect(sequences).toEqual([5, 6]);
  // After a reboot the kernel's sequence restarts at 0.
  const rebooted = setUp(database, 'boot-2');
  rebooted.state.lines = [kernelLine(1, XID_79)];
  rebooted.job.readKernelLog();
  expect(rebooted.cordon()).toMatchObject({ reason: 'Xid' });
});

it('does not cordon a card for the Xid of a program, and bounds the stored rows', () => {
  const { job, state, cordon, store } = setUp();
  state.lines = Array.from({ length: 1_200 }, (_, index) => kernelLine(index, XID_13));
  job.readKernelLog();
  expect(cordon()).toBeNull();
  expect(store.xids('0000:1b:00', 0, Infinity)).toHaveLength(1_000);
});
