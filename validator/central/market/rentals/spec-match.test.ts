import { describe, expect, it } from 'vitest';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { applyConstraints } from '../executors/constraints.ts';
import { machineNameOf } from '../executors/executor-response.ts';
import type { MarketNode } from '../executors/market.store.ts';
import { UNMEASURED } from '../executors/node-figures.ts';
import type { NodeSpec } from './rent-by-spec.schemas.ts';
import { constraintsOf } from './spec-constraints.ts';
import { HARD_STATE, matchSpec, type NoMatch } from './spec-match.ts';

const GB = 1_000_000_000;

function node(change: Partial<MarketNode> = {}): MarketNode {
  return {
    ...UNMEASURED,
    id: 'a',
    gpu_type: 'NVIDIA H100 80GB HBM3',
    gpu_count: 4,
    machine_name: 'NVIDIA H100 80GB HBM3',
    price_uusd_per_gpu_hour: 2_400_000,
    min_gpu_count: 1,
    collateral_deposited: 0,
    reliability_permille: null,
    reachable_since: null,
    lat: null,
    lon: null,
    location_json: null,
    can_split: 1,
    slots_total: 4,
    slots_free: 4,
    first_verified_at: 1,
    revision: 1,
    ...change,
  };
}

const placed = (country: string, code: string) =>
  JSON.stringify({ country, country_code: code, region: null });

function match(nodes: MarketNode[], spec: NodeSpec) {
  const candidates = nodes
    .toSorted((a, b) => a.price_uusd_per_gpu_hour - b.price_uusd_per_gpu_hour)
    .map((each) => ({ id: each.id, machineName: machineNameOf(each), node: each }));
  return matchSpec(nodes.length, applyConstraints(HARD_STATE, candidates, constraintsOf(spec)));
}

describe('the error if no node matches', () => {
  it.each<[string, NodeSpec, MarketNode[], object]>([
    [
      'a price',
      { gpu_count: 1, max_price_per_gpu_hour: 2 },
      [node(), node({ id: 'b', price_uusd_per_gpu_hour: 3_000_000 })],
      {
        constraint: 'max_price_per_gpu_hour',
        requested: 2,
        best_offered: 2.4,
        candidates_before: 2,
        nearest: [
          { constraint: 'max_price_per_gpu_hour', requested: 2, offered: 2.4, executor_id: 'a' },
          { constraint: 'max_price_per_gpu_hour', requested: 2, offered: 3, executor_id: 'b' },
        ],
        message: 'No node within 2.00 per GPU-hour; cheapest offered 2.40',
        hint: 'Raise max_price_per_gpu_hour to 2.40 or more.',
      },
    ],
    [
      'a GPU type',
      { gpu_type: 'B200' },
      [node(), node({ id: 'b', machine_name: 'NVIDIA L40S' }), node({ id: 'c' })],
      { constraint: 'gpu_type', best_offered: 'H100', candidates_before: 3 },
    ],
    [
      'more GPUs than are free',
      { gpu_count: 4 },
      [node({ slots_free: 2 }), node({ id: 'b', slots_free: 3 })],
      { constraint: 'gpu_count', best_offered: 3, nearest: [{ offered: 3 }, { offered: 2 }] },
    ],
    [
      'fewer GPUs than the minimum',
      { gpu_count: 1 },
      [node({ min_gpu_count: 2 }), node({ id: 'b', min_gpu_count: null })],
      { constraint: 'gpu_count', best_offered: 2, hint: 'Request a gpu_count of 2.' },
    ],
    [
      'a part of a node that cannot be split',
      { gpu_count: 1 },
      [node({ can_split: 0 })],
      { constraint: 'gpu_count', best_offered: 4 },
    ],
    [
      'a whole node',
      {},
      [node({ slots_free: 2 })],
      {
        requested: null,
        best_offered: 2,
        nearest: [{ requested: 'all', offered: 2 }],
        message: 'No node rented whole; best offered 2',
      },
    ],
    [
      'main memory',
      { min_ram_gb: 512 },
      [node({ memory_kib: (256 * GB) / 1_024 }), node({ id: 'b' })],
      {
        constraint: 'min_ram_gb',
        best_offered: 256,
        nearest: [{ offered: 256 }, { offered: 'unknown', executor_id: 'b' }],
        hint: 'Lower min_ram_gb to 256 or less.',
      },
    ],
    [
      'a figure that no node reports',
      { min_download_mbps: 1 },
      [node()],
      {
        constraint: 'min_download_mbps',
        best_offered: null,
        message: 'No node with min_download_mbps 1; best offered unknown',
        hint: 'Omit min_download_mbps.',
      },
    ],
    [
      'docker_in_docker',
      { docker_in_docker: true },
      [node({ sysbox_runtime: 0 })],
      { constraint: 'docker_in_docker', best_offered: false },
    ],
    [
      'a country',
      { country: 'Iceland' },
      [node({ location_json: placed('France', 'FR') }), node({ id: 'b' })],
      {
        constraint: 'country',
        best_offered: 'FR',
        nearest: [{ offered: 'FR' }, { offered: 'unknown' }],
      },
    ],
    ['an empty market', {}, [], { constraint: 'rentable', best_offered: null, nearest: [] }],
  ])('%s', (_, spec, nodes, expected) => {
    expect(match(nodes, spec)).toMatchObject(expected);
  });
});

it.each<[string, NodeSpec, Partial<MarketNode>]>([
  ['the short GPU type', { gpu_type: 'h100' }, {}],
  ['the full GPU name', { gpu_type: 'nvidia h100 80gb hbm3' }, {}],
  ['80 GB of an 80 GB card', { min_vram_gb: 80 }, { gpu_memory_mib: 81_559 }],
  ['a country by its name', { country: 'france' }, { location_json: placed('France', 'FR') }],
  ['a country by its code', { country: 'fr' }, { location_json: placed('France', 'FR') }],
  ['exactly the price', { max_price_per_gpu_hour: 2.4 }, {}],
  ['a false docker_in_docker', { docker_in_docker: false }, { sysbox_runtime: 0 }],
])('accepts %s', (_, spec, change) => {
  expect(match([node(change)], spec)).toMatchObject({ survivors: [{ id: 'a' }] });
});

it('chooses the node with the lowest price per GPU, then the lower id', () => {
  const nodes = [
    node({ id: 'c' }),
    node({ id: 'b' }),
    node({ id: 'd', price_uusd_per_gpu_hour: 2_399_999 }),
  ];
  expect(match(nodes, {})).toMatchObject({ survivors: [{ id: 'd' }, { id: 'b' }, { id: 'c' }] });
});

it('lists at most 3 nearest nodes, and prefers the cheaper of equally near nodes', () => {
  const nodes = [8, 4, 4, 2, 4].map((cores, index) => node({ id: `n${index}`, cpu_cores: cores }));
  const { nearest } = match(nodes, { min_cpus: 9 }) as NoMatch;
  expect(nearest.map(({ executor_id }) => executor_id)).toEqual(['n0', 'n1', 'n2']);
});

describe('on random markets', () => {
  const random = createSeededRandom(20_261_121);
  const pick = <T>(values: readonly T[]): T => values[random.int(values.length)] as T;
  const maybe = <T>(values: readonly T[]): T | undefined =>
    random.int(2) === 0 ? undefined : pick(values);

  const someNode = (index: number) => {
    const total = pick([1, 2, 4, 8]);
    return node({
      id: `node-${String(index).padStart(3, '0')}`,
      machine_name: pick(['NVIDIA H100 80GB HBM3', 'NVIDIA L40S', 'NVIDIA GeForce RTX 4090']),
      gpu_count: total,
      slots_total: total,
      slots_free: random.int(total + 1),
      min_gpu_count: pick([null, 1, 2]),
      can_split: pick([0, 1]),
      gpu_memory_mib: pick([null, 24_564, 46_068, 81_559]),
      cpu_cores: pick([null, 16, 64]),
      memory_kib: pick([null, 62_500_000, 500_000_000]),
      disk_free_kib: pick([null, 97_656_250]),
      ports_free: pick([null, 3, 100]),
      sysbox_runtime: pick([null, 0, 1]),
      location_json: pick([null, placed('France', 'FR'), placed('Japan', 'JP')]),
      price_uusd_per_gpu_hour: pick([400_000, 1_000_000, 2_400_000]),
    });
  };
  const someSpec = (): NodeSpec => ({
    gpu_type: maybe(['H100', 'L40S', 'RTX 4090', 'B200']),
    gpu_count: maybe([1, 2, 4]),
    min_vram_gb: maybe([24, 80]),
    docker_in_docker: maybe([true, false]),
    country: maybe(['FR', 'japan']),
    min_cpus: maybe([16, 32]),
    min_ram_gb: maybe([64, 512, 600]),
    min_disk_gb: maybe([100]),
    min_ports: maybe([4]),
    max_price_per_gpu_hour: maybe([0.4, 1, 2]),
  });

  /** An independent implementation of every constraint. */
  const oracle: [string, (spec: NodeSpec, n: MarketNode) => boolean][] = [
    ['gpu_type', (s, n) => s.gpu_type == null || (n.machine_name ?? '').includes(s.gpu_type)],
    [
      'gpu_count',
      (s, n) => {
        const wanted = s.gpu_count ?? n.slots_total;
        if (wanted > n.slots_free) return false;
        if (wanted === n.slots_total) return n.min_gpu_count === null || wanted >= n.min_gpu_count;
        return n.can_split === 1 && n.min_gpu_count !== null && wanted >= n.min_gpu_count;
      },
    ],
    ['min_vram_gb', (s, n) => atLeast((n.gpu_memory_mib ?? 0) * 1_048_576, s.min_vram_gb)],
    ['docker_in_docker', (s, n) => s.docker_in_docker !== true || n.sysbox_runtime === 1],
    [
      'country',
      (s, n) =>
        s.country == null ||
        (n.location_json ?? '').toLowerCase().includes(`"${s.country.toLowerCase()}"`),
    ],
    ['min_cpus', (s, n) => s.min_cpus == null || (n.cpu_cores ?? 0) >= s.min_cpus],
    ['min_ram_gb', (s, n) => atLeast((n.memory_kib ?? 0) * 1_024, s.min_ram_gb)],
    ['min_disk_gb', (s, n) => atLeast((n.disk_free_kib ?? 0) * 1_024, s.min_disk_gb)],
    ['min_ports', (s, n) => s.min_ports == null || (n.ports_free ?? 0) >= s.min_ports],
    [
      'max_price_per_gpu_hour',
      (s, n) =>
        s.max_price_per_gpu_hour == null ||
        n.price_uusd_per_gpu_hour <= s.max_price_per_gpu_hour * 1_000_000,
    ],
  ];
  const atLeast = (bytes: number, gb: number | null | undefined) => gb == null || bytes >= gb * GB;

  it('counts, after each constraint, the nodes that meet this constraint and all earlier ones', () => {
    let matched = 0;
    for (let round = 0; round < 400; round += 1) {
      const nodes = Array.from({ length: 40 }, (_, index) => someNode(index));
      const spec = someSpec();
      const found = match(nodes, spec);
      for (const { constraint, remaining } of found.funnel.slice(1)) {
        const until = oracle.findIndex(([name]) => name === constraint) + 1;
        const passing = nodes.filter((n) => oracle.slice(0, until).every(([, ok]) => ok(spec, n)));
        expect([round, constraint, remaining]).toEqual([round, constraint, passing.length]);
      }
      if ('survivors' in found) {
        matched += 1;
        const prices = found.survivors.map((n) => n.price_uusd_per_gpu_hour);
        expect(prices).toEqual(prices.toSorted((a, b) => a - b));
      } else {
        expect(found.funnel.at(-1)).toEqual({ constraint: found.constraint, remaining: 0 });
        expect(found.funnel.at(-2)?.remaining).toBe(found.candidates_before);
      }
    }
    expect(matched).toBeGreaterThan(20);
    expect(matched).toBeLessThan(380);
  });

  it('leaves at least one node after a failed constraint is set to the best offered value', () => {
    let relaxed = 0;
    for (let round = 0; round < 400; round += 1) {
      const nodes = Array.from({ length: 20 }, (_, index) => someNode(index));
      const spec = someSpec();
      const found = match(nodes, spec);
      if ('survivors' in found || found.best_offered === null) continue;
      relaxed += 1;
      const again = match(nodes, { ...spec, [found.constraint]: found.best_offered });
      const step = again.funnel.find(({ constraint }) => constraint === found.constraint);
      // The funnel has no step for an omitted constraint.
      expect([round, found.constraint, step?.remaining ?? 1]).not.toEqual([
        round,
        found.constraint,
        0,
      ]);
    }
    expect(relaxed).toBeGreaterThan(50);
  });
});
