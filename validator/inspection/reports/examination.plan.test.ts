import { expect, it } from 'vitest';
import type { ReportFinding, ReportReason } from '#shared/api/central/pod-reports.ts';
import { testInventory } from '../../../test/fixtures/host-inventory.ts';
import type { RentalFacts } from '../../checks/measured.ts';
import { INSPECT_SCRIPT, shortfallIn } from '../rental-probe/probe-spec.ts';
import { admittedShortfall, expectedOf, findingOf, nextStep } from './examination.plan.ts';

const GIB = 1024 ** 3;
const H100 = 'NVIDIA H100 80GB HBM3';
const OFFER = {
  gpu_type: H100,
  gpu_count: 2,
  cpu_cores: 8,
  memory_bytes: 16 * GIB,
  disk_bytes: 100 * GIB,
};
const inventory = testInventory('00000000-0000-4000-8000-000000000001');
const uuids = inventory.gpu.devices.map(({ uuid }) => uuid);

const PASSED: RentalFacts = {
  status: 'passed',
  step: null,
  detail: 'detail',
  ms: 1,
  at_ms: 2,
  memory: null,
  pods: [],
  refused: false,
  repeated: false,
};
const WHOLE = {
  cards: '2',
  names: `${H100};${H100};`,
  memory: String(16 * GIB),
  cpu: '800000 100000',
  disk: String(100 * 1024 ** 2),
};

const found = (change: Partial<ReportFinding>): ReportFinding => {
  return { means: 'test_rental', at: 1, step: null, shortfall: null, ...change };
};
const suspicion = found({ means: 'pod', shortfall: '1 of 2 cards' });
const unreachable = found({ step: 'login', shortfall: 'timeout' });

it.each<[string, ReportReason, ReportFinding[], string]>([
  ['nothing yet', 'other', [], 'test_rental'],
  [
    'less by the agent’s own statement',
    'other',
    [found({ means: 'agent', shortfall: 'x' })],
    'confirmed',
  ],
  ['everything inside the pod', 'other', [found({ means: 'pod' })], 'not_confirmed'],
  ['less inside the pod only', 'fewer_gpus', [suspicion], 'test_rental'],
  ['everything in a test rental', 'other', [found({})], 'not_confirmed'],
  ['everything after a suspicion', 'other', [suspicion, found({})], 'undecided'],
  ['less in a test rental', 'other', [found({ step: 'inside', shortfall: 'x' })], 'confirmed'],
  ['one failed login', 'ssh_unusable', [unreachable], 'test_rental'],
  ['two failed logins', 'ssh_unusable', [unreachable, unreachable], 'confirmed'],
])('decides: %s', (_, reason, findings, expected) => {
  expect(nextStep(reason, findings)).toBe(expected);
});

it.each<[string, ReportReason, Partial<RentalFacts>, boolean]>([
  ['that was not run', 'other', { status: 'not_run' }, false],
  ['that did not start', 'less_memory', { status: 'failed', step: 'ready' }, false],
  ['without a login', 'ssh_unusable', { status: 'failed', step: 'login' }, true],
  ['with less inside', 'other', { status: 'failed', step: 'inside' }, true],
  ['that passed', 'other', { status: 'passed', step: null }, true],
])('uses a test rental %s', (_, reason, change, isFinding) => {
  const rental: RentalFacts = { ...PASSED, ...change };
  expect(findingOf(reason, rental) !== null).toBe(isFinding);
});

it('reports what an agent itself states to be less than offered', () => {
  const stated = (leased: string[], change: object = {}) =>
    admittedShortfall(OFFER, { gpu_uuids: leased }, { ...inventory, ...change });
  const { gpu } = inventory;
  const [first] = gpu.devices;
  const renamed = gpu.devices.map((card) => ({ ...card, name: 'NVIDIA L4' }));
  expect(stated(uuids)).toBeNull();
  expect(stated(uuids.slice(1))).toBe('1 of 2 cards');
  expect(stated(uuids, { gpu: { ...gpu, devices: [first] } })).toBe('1 of 2 cards');
  expect(stated(uuids, { gpu: { ...gpu, devices: renamed } })).toMatch(/^a NVIDIA L4 instead of/);
  expect(stated(uuids, { cpu: { ...inventory.cpu, cores: 4 } })).toBe('4 of 8 cores');
  expect(stated(uuids, { memory: { total_kib: 1024 } })).toMatch(/bytes of memory$/);
});

it('compares cards, model, memory, cores and disk inside a pod', () => {
  const expected = expectedOf(OFFER, { simulated: false });
  const output = (change: Record<string, string> = {}) =>
    Object.entries({ ...WHOLE, ...change })
      .map(([name, value]) => `${name}=${value}`)
      .join('\n');
  expect(shortfallIn(expected, output())).toBeNull();
  expect(shortfallIn(expected, output({ cards: '1' }))).toBe('1 of 2 cards');
  expect(shortfallIn(expected, output({ names: 'NVIDIA L4;' }))).toMatch(/instead of/);
  expect(shortfallIn(expected, output({ memory: String(2 * GIB) }))).toMatch(/of memory/);
  expect(shortfallIn(expected, output({ cpu: '100000 100000' }))).toBe('1 of 8 cores');
  expect(shortfallIn(expected, output({ disk: '1024' }))).toMatch(/of disk/);
  // Values that could not be read, and cards that are simulated, prove nothing.
  expect(shortfallIn(expected, output({ names: '', memory: 'max', cpu: '', disk: '' }))).toBeNull();
  const simulated = expectedOf(OFFER, { simulated: true });
  expect(shortfallIn(simulated, output({ cards: '0', names: '' }))).toBeNull();
});

it('prints a value for each comparison', () => {
  for (const name of ['cards', 'seen', 'memory', 'cpu', 'disk', 'names']) {
    expect(INSPECT_SCRIPT).toContain(`${name}=`);
  }
});
