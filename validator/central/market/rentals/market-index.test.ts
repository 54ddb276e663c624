import { expect, it } from 'vitest';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { applyConstraints, type Constraint } from '../executors/constraints.ts';
import type { MarketNode } from '../executors/market.store.ts';
import { NO_ANNOTATIONS } from '../executors/node-annotations.ts';
import { UNMEASURED } from '../executors/node-figures.ts';
import { ExecutorListQuery } from '../executors/node-filters.schemas.ts';
import { marketConstraints, subjectOf } from '../executors/node-filters.ts';
import { matchOffers } from '../executors/offer-matches.ts';
import { byScore, type Listed } from '../executors/offer-order.ts';
import { createOffers } from '../executors/offers.ts';
import type { NodeSpec } from './rent-by-spec.schemas.ts';
import { constraintsOf } from './spec-constraints.ts';

const MARKETS = 15;
const ROUNDS = 12;
const SEARCHES = 25;
/** More than a list applies one by one. */
const MANY = 160;

const PLACES = [
  null,
  { country: 'Germany', country_code: 'DE', region: 'BE', region_name: 'Berlin' },
  { country: 'Germany', country_code: 'DE', region: 'BY', region_name: 'Bavaria', city: 'Munich' },
  { country: 'Fiji', country_code: 'FJ', region: null },
];
const NAMES = ['NVIDIA H200', 'NVIDIA L40S', 'NVIDIA GeForce RTX 4090'];
/** Coordinates at which circles touch a pole or cross the line at which longitudes change their sign. */
const EDGES = [-180, -179.5, -90, -89.9, 0, 89.5, 90, 179.9, 180];

/** A random market whose changes are applied to offers. */
function createMarket(seed: number) {
  const random = createSeededRandom(seed);
  const pick = <T>(values: readonly T[]): T => values[random.int(values.length)] as T;
  const maybe = <T>(value: () => T): T | undefined => (random.int(3) === 0 ? value() : undefined);
  const fraction = () => random.int(1_000_000) / 1_000_000;
  const degrees = (most: number) =>
    random.int(4) === 0
      ? Math.max(-most, Math.min(most, pick(EDGES)))
      : Math.round((fraction() * 2 - 1) * most * 10) / 10;
  const coordinates = () => ({ lat: degrees(90), lon: degrees(180) });
  const { offers, apply } = createOffers();
  let created = 0;
  // In random order, and never equal.
  const newId = () => {
    created += 1;
    return `n${random.int(1_000)}-${created}`;
  };

  function listed(id: string): Listed {
    const total = pick([1, 2, 4, 8]);
    const place = pick(PLACES);
    const node: MarketNode = {
      ...UNMEASURED,
      id,
      gpu_type: pick(NAMES),
      gpu_count: total,
      machine_name: pick([...NAMES, null]),
      price_uusd_per_gpu_hour: random.int(6) * 400_000,
      min_gpu_count: pick([null, 1, 2]),
      collateral_deposited: pick([0, 1]),
      reliability_permille: pick([null, 0, 500, 900, 1_000]),
      reachable_since: null,
      ...(random.int(4) === 0 ? { lat: null, lon: null } : coordinates()),
      location_json: place === null ? null : JSON.stringify(place),
      can_split: pick([null, 0, 1]),
      gpu_memory_mib: pick([null, 24_000, 80_000]),
      cpu_cores: pick([null, 8, 64]),
      memory_kib: pick([null, 64_000_000]),
      disk_free_kib: random.int(1_000_000_000),
      ports_free: random.int(20),
      download_mbps: pick([null, 10, 900]),
      sysbox_runtime: pick([null, 0, 1]),
      nvlink: pick([null, 0, 1]),
      slots_total: total,
      slots_free: 1 + random.int(total),
      first_verified_at: 1,
      revision: 1,
    };
    return { ...subjectOf(node, node.price_uusd_per_gpu_hour, node.slots_free), node };
  }

  const ids = () => offers.nodes.filter(() => random.int(5) === 0).map(({ id }) => id);
  const place = () => ({
    country: maybe(() => pick(['DE', 'germany', 'Fiji', 'FR'])),
    region: maybe(() => pick(['BE', 'de-by', 'Bavaria', 'XX'])),
    ...maybe(() => ({
      ...coordinates(),
      max_distance_mile: pick([0, 1, 30, 300, 3_000, 6_300, 13_000]),
    })),
  });

  return {
    offers,
    change(): void {
      const count = random.int(5) === 0 ? MANY : random.int(6);
      const removed = offers.nodes.filter(() => random.int(offers.nodes.length) < count);
      const added = Array.from({ length: count }, () => listed(newId()));
      const changed = removed.filter(() => random.int(2) === 0).map(({ id }) => listed(id));
      apply(removed, [...added, ...changed]);
    },

    search(): Constraint<Listed>[] {
      const query = {
        machine_names: maybe(() => pick([NAMES[0], NAMES.join(', '), 'NVIDIA B200'])),
        price_lte: maybe(() => pick(['0', '0.4', '1.3', '9'])),
        price_gte: maybe(() => pick(['0', '0.8', '1.3', '9'])),
        gpu_count_lte: maybe(() => pick(['1', '4', '0'])),
        gpu_count_gte: maybe(() => pick(['1', '3', '9'])),
        bookmarked: maybe(() => pick(['true', 'false'])),
        collateral_deposited: maybe(() => pick(['true', 'false'])),
        min_download_mbps: maybe(() => pick(['0', '100'])),
        nvlink: maybe(() => pick(['true', 'false'])),
        gpu_type: maybe(() => pick(['H200', '4090', 'NVIDIA L40S'])),
        min_vram_gb: maybe(() => pick(['20', '80'])),
        min_cpus: maybe(() => pick(['4', '32'])),
        price_per_hour_lte: maybe(() => pick(['0', '0.9', '4', '40'])),
      };
      const given = Object.entries({ ...query, ...place() }).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)]],
      );
      const notes = { ...NO_ANNOTATIONS, bookmarked: new Set([...ids(), 'unknown']) };
      return marketConstraints(ExecutorListQuery.parse(Object.fromEntries(given)), notes);
    },

    specification(): Constraint<Listed>[] {
      const spec: NodeSpec = {
        gpu_type: maybe(() => pick(['H200', '4090', 'NVIDIA L40S'])),
        gpu_count: maybe(() => 1 + random.int(8)),
        min_vram_gb: maybe(() => pick([20, 80])),
        docker_in_docker: maybe(() => true),
        ...place(),
        min_cpus: maybe(() => pick([4, 32])),
        min_ram_gb: maybe(() => 60),
        min_disk_gb: maybe(() => random.int(1_000)),
        min_ports: maybe(() => random.int(20)),
        min_reliability: maybe(() => pick([0.5, 1])),
        max_price_per_gpu_hour: maybe(() => pick([0, 0.8, 2])),
      };
      return constraintsOf(spec);
    },
  };
}

function idsOf(nodes: Iterable<Listed>): string[] {
  return Array.from(nodes, ({ id }) => id);
}

it('finds with its indexes what an examination of all nodes finds, in random markets', () => {
  const counted = { met: 0, unmet: 0, spared: 0 };
  for (let seed = 1; seed <= MARKETS; seed += 1) {
    const market = createMarket(seed);
    for (let round = 0; round < ROUNDS; round += 1) {
      market.change();
      const { offers } = market;
      for (let search = 0; search < SEARCHES; search += 1) {
        const constraints = search % 2 === 0 ? market.search() : market.specification();
        const found = matchOffers('all', offers, constraints);
        const scanned = applyConstraints('all', offers.nodes, constraints);
        const left = [...scanned.left];
        expect(found.funnel).toEqual(scanned.funnel);
        expect(idsOf(found.left)).toEqual(idsOf(left));
        expect(found.left).toHaveLength(left.length);
        expect(idsOf(found.left.byScore())).toEqual(idsOf(left.toSorted(byScore)));
        expect(found.unmet?.constraint).toBe(scanned.unmet?.constraint);
        expect(idsOf(found.unmet?.before() ?? [])).toEqual(idsOf(scanned.unmet?.before() ?? []));
        expect(found.unmet?.explain()).toEqual(scanned.unmet?.explain());
        if (left.length > 0) counted.met += 1;
        if (scanned.unmet !== null) counted.unmet += 1;
        if (left.length > 0 && found.examined === 0) counted.spared += 1;
      }
    }
  }
  // The searches cover every kind of result.
  expect(counted.met).toBeGreaterThan(400);
  expect(counted.unmet).toBeGreaterThan(400);
  expect(counted.spared).toBeGreaterThan(80);
});
