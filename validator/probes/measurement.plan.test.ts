/** Measurements into a pod: the program runs in a real shell, and hostile output changes nothing. */
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { derivedRandom } from '#shared/runtime/random.ts';
import { testInventory } from '../../test/fixtures/host-inventory.ts';
import { printedInPod } from '../simulate/fleet/pod-shell.ts';
import { planMeasurement, seenIn } from './measurement.plan.ts';
import { compareMeasurements, type Offer, type Seen, shortfallsIn } from './seen.ts';

const OFFER: Offer = {
  cards: { count: 2, model: 'NVIDIA H100 80GB HBM3', memoryMib: 81_559 },
  cores: 1,
  memoryKib: 1_048_576,
  diskKib: 1_048_576,
  isIdle: true,
};
const plannedFor = (at: number, offer = OFFER) =>
  planMeasurement(derivedRandom('secret', `measurement ${at}`), offer);

/** Facts of an honest pod. */
const HONEST: Seen = {
  quota_cores: 1,
  limit_kib: 1_048_576,
  processors: 32,
  total_kib: 2_097_152,
  free_disk_kib: 2_097_152,
  cards: [1, 2].map((at) => ({
    model: 'NVIDIA H100 80GB HBM3',
    memory_mib: 81_559,
    used_mib: 3,
    uuid: `GPU-${at}`,
  })),
  devices: 2,
  busy_cores: 0.99,
  used_memory: true,
  wrote_disk: true,
};

it('runs as a program of an ordinary shell', async () => {
  const [program] = plannedFor(1).steps;
  const run = promisify(execFile)('sh', ['-c', program?.command ?? ''], { timeout: 60_000 });
  run.child.stdin?.end(program?.input);
  const seen = seenIn([program?.read((await run).stdout) ?? {}]);
  expect(seen).toMatchObject({ used_memory: true, wrote_disk: true });
  expect(seen.busy_cores).toBeGreaterThan(0);
  expect(seen.busy_cores).toBeLessThanOrEqual(availableParallelism() + 0.5);
});

it('reads the facts of a pod, however the commands are spelled', () => {
  const inside = testInventory('00000000-0000-4000-8000-000000000001', { collectedMs: 0 });
  const offer = { ...OFFER, cores: inside.cpu.cores };
  for (let at = 0; at < 40; at += 1) {
    const { steps } = plannedFor(at, offer);
    const seen = seenIn(
      steps.map(({ command, input, read }) => read(printedInPod(inside, command, input))),
    );
    expect(Object.entries(seen).filter(([, value]) => value === null)).toEqual([]);
    expect(seen).toMatchObject({
      quota_cores: inside.cpu.cores,
      total_kib: inside.memory.total_kib,
      free_disk_kib: inside.disk.free_kib,
      devices: inside.gpu.devices.length,
      busy_cores: inside.cpu.cores,
    });
  }
});

it('differs from measurement to measurement: order, spelling, words and amounts', () => {
  const measurements = Array.from({ length: 50 }, (_, at) => plannedFor(at));
  expect(new Set(measurements.map(({ steps }) => steps[0]?.input)).size).toBe(50);
  const orders = measurements.map(({ steps }) => steps.map(({ command }) => command).join('\n'));
  expect(new Set(orders).size).toBe(50);
  const words = measurements.map(({ steps }) => new Set(steps[0]?.input.match(/\b[a-z]{4,9}\b/g)));
  const [first = new Set(), ...others] = words;
  const common = others.reduce((shared, each) => shared.intersection(each), first);
  // Only the words of the shell remain.
  expect([...common].filter((word) => !SHELL.includes(word))).toEqual([]);
});

const SHELL =
  'read proc uptime echo times while done sleep kill null wait head zero tail memory max exit nvidia cgroup limit_in_bytes cpuacct quota period bytes'.split(
    ' ',
  );

it.each([
  ['nothing', ''],
  ['huge numbers', `${'9'.repeat(400)} ${'9'.repeat(400)}\nMem: ${'9'.repeat(400)}\n`],
  ['negative numbers', '-1 -1\nMem: -5\noverlay -1 -1 -1% /\n'],
  ['much text', 'x, y, z, w\n'.repeat(5_000)],
  ['control characters', '\u0000\u001b[2J\r\n'.repeat(100)],
])('reads %s without harm, and concludes that nothing can be read', (_, output) => {
  const seen = seenIn(plannedFor(1).steps.map(({ read }) => read(output)));
  const silent = { ...seen, cards: null };
  expect(shortfallsIn(OFFER, { seen: silent })).toEqual([
    { fact: 'login', offered: 'SSH', seen: 'no readable output' },
  ]);
});

it('reports each fact below the offer', () => {
  const facts = (change: Partial<Seen>) =>
    shortfallsIn(OFFER, { seen: { ...HONEST, ...change } }).map(({ fact }) => fact);
  const [card] = HONEST.cards ?? [];
  if (card === undefined) throw new Error('no card');
  expect(facts({})).toEqual([]);
  expect(facts({ quota_cores: 0.5 })).toEqual(['cores']);
  expect(facts({ busy_cores: 0.3 })).toEqual(['cores']);
  expect(facts({ limit_kib: 65_536 })).toEqual(['memory']);
  expect(facts({ used_memory: false })).toEqual(['memory']);
  expect(facts({ free_disk_kib: 100 })).toEqual(['disk']);
  expect(facts({ wrote_disk: false })).toEqual(['disk']);
  expect(facts({ devices: 0 })).toEqual(['cards']);
  expect(facts({ quota_cores: null, processors: null })).toEqual([]);
  expect(facts({ quota_cores: null, processors: null, busy_cores: null })).toEqual(['cores']);
  expect(facts({ cards: [card] })).toEqual(['cards']);
  expect(facts({ cards: [card, card] })).toEqual(['card_uuids']);
  expect(facts({ cards: [card, { ...card, uuid: 'GPU-2', model: 'NVIDIA L4' }] })).toEqual([
    'card_model',
  ]);
  expect(facts({ cards: [card, { ...card, uuid: 'GPU-2', memory_mib: 24_000 }] })).toEqual([
    'card_memory',
  ]);
  expect(facts({ cards: [card, { ...card, uuid: 'GPU-2', used_mib: 40_000 }] })).toEqual([
    'card_in_use',
  ]);
});

it('counts a mismatch only if both measurements found it', () => {
  const starved = { seen: { ...HONEST, quota_cores: 0.5 } };
  const full = { seen: HONEST };
  const compare = (...measurements: [typeof starved, typeof full]) =>
    compareMeasurements(OFFER, measurements, { downKbit: 1, endedMs: 5_000_000 });
  expect(compare(starved, full)).toMatchObject({ mismatches: [], seen_once: ['cores'] });
  expect(compare(starved, starved)).toEqual({
    mismatches: [{ fact: 'cores', offered: '1 cores', seen: ['limit 0.5', 'limit 0.5'] }],
    seen_once: [],
    down_kbit: 1,
    ended_ms: 3_600_000,
  });
});
