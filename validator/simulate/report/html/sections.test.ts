/** Tests the findings of single sections, from the figures that they show. */
import { describe, expect, it } from 'vitest';
import type { DetectedCheat, FaultEffect, MarketSample, Report } from '../report.ts';
import { detectionSections } from './detection-sections.ts';
import { priceSection } from './price-section.ts';
import { selfRentalSection } from './self-rental-section.ts';
import { startSection } from './start-section.ts';

type Start = Parameters<typeof startSection>[0];

describe('section about starts', () => {
  const section = (seconds: number[], slow: number) =>
    startSection({
      rentals: {
        start_seconds: seconds,
        failed_starts: { 'CREATION_FAILED start_failed': 5 },
        start_limit_seconds: 600,
        slow_start_factor: 10,
      } as unknown as Start['rentals'],
      faults: [
        { kind: 'slow', failed_starts: slow },
        { kind: 'region', failed_starts: 1 },
      ] as FaultEffect[],
      scenario: {
        supply: { classes: [{ start_seconds: 60 }, { start_seconds: 120 }] },
      } as Start['scenario'],
    });

  it('has one sentence if half of the pods ran within the same time as nearly all', () => {
    expect(section([105, 225, 225, 225], 0).finding).toBe(
      'At least 95 % of the pods ran within 225 s; 5 rentals never ran',
    );
    expect(section([105, 105, 225], 0).finding).toMatch(
      /^Half of the pods ran within 105 s, 95 % within 225 s; /,
    );
  });

  it('names the hosts with slow starts, which exceed the launch limit', () => {
    const { finding, notes, openTables } = section([225], 3);
    expect(finding).toContain('5 rentals never ran, 3 of them on hosts that started pods slowly');
    expect(notes[1]).toBe(
      'The central API gives up a start after 10 min. Of 5 rentals that never ran, 3 began on hosts with the fault “host started pods slowly”: a start takes 10 times as long there, on average 10 min to 20 min, by GPU model, so most starts exceed the limit.',
    );
    expect(openTables?.[0]?.table.rows.map(([, ...values]) => values)).toEqual([
      ['3', '60 %'],
      ['1', '20 %'],
      ['1', '20 %'],
    ]);
  });
});

describe('section about cheats', () => {
  const CHEAT: DetectedCheat = {
    cheat: 'closed_ports',
    hosts: 2,
    found: 0,
    expected: { outcome: 'fails', checks: ['ports PORTS_CLOSED'], inspections: 2 },
    missed_inspections: [1, 1],
    delays_hours: [],
    reasons: {},
  };
  const WEIGHTS = [
    { cheat: 'closed_ports', weight_share: 0.05 },
    { cheat: null, weight_share: 0.95 },
  ] as Report['weights'];
  const honest = {
    hosts: 0,
    checks: 0,
    failed_in_fault: 0,
    failed_by_fault: {},
    failed_in_service_fault: {},
    failed_without_fault: {},
  };
  const section = (change: Partial<DetectedCheat>) => {
    const [cheats] = detectionSections({
      detection: { cheats: [{ ...CHEAT, ...change }], honest },
      weights: WEIGHTS,
    });
    return { finding: cheats?.finding, row: cheats?.openTables?.[0]?.table.rows[0] };
  };

  it('says whether hosts that were not found could have been', () => {
    expect(section({}).finding).toBe(
      '0 of 2 cheating hosts were found; of 2 hosts that were not found, inspections could have found none in this time',
    );
    expect(section({}).row).toEqual([
      'closes its ports',
      'check ports (ports are closed)',
      '2',
      '2: had too few inspections, with at most 1 inspection each',
      '5 %',
    ]);
    const missed = section({ missed_inspections: [1, 4] });
    expect(missed.finding).toContain(
      'of 2 hosts that were not found, inspections could have found 1 in',
    );
    expect(missed.row?.[3]).toBe('2: could have been found, with at most 4 inspections each');
  });

  it('names a cheat that no check fails', () => {
    const weightless = {
      outcome: 'no weight' as const,
      checks: ['proof_age PROOF_MISSING'],
      inspections: 1,
    };
    expect(section({ expected: weightless }).row?.slice(1)).toEqual([
      'check proof_age (proof missing): should take away its weight, and does not fail it',
      '1',
      '2: no check fails it, so it cannot be found',
      '5 %',
    ]);
    const unseen = { outcome: 'passes' as const, checks: [], inspections: null };
    expect(section({ expected: unseen }).row?.slice(1, 3)).toEqual([
      'no check of this policy',
      '-',
    ]);
  });
});

describe('section about prices', () => {
  const sample = (at: number, offered: number, asked: number) =>
    ({ at_hours: at, offered_usd: offered, asked_usd: asked }) as MarketSample;
  const strategy = { strategy: 'war', hosts: 4, changes: 9, mean_share: 0.5, lowest_share: 0.4 };
  const section = (reached: number) =>
    priceSection([['A100', [sample(1, 1, 1), sample(2, 1.2, 0.9)]]], {
      usage: [],
      prices: {
        floor_share: 0.3,
        ceiling_share: 2,
        strategies: [{ ...strategy, reached_floor: reached, reached_ceiling: 0 }],
      },
      shades: { bands: [], meanings: [] },
    });

  it('separates the changes of providers from those of the hosts that passed inspection', () => {
    const [row] = section(0).table.rows;
    expect(row?.slice(0, 6)).toEqual([
      'A100',
      '$1.000',
      '$1.200',
      '20 %',
      '-10 percentage points',
      '30 percentage points',
    ]);
  });

  it('names the floor, and the number of hosts that reached it', () => {
    expect(section(0).notes.at(-1)).toBe(
      'Strategies stop at 30 % of the first price of a host, and at 200 %: no host reached this floor, and the lowest price was 40 % of the first.',
    );
    expect(section(3).notes.at(-1)).toContain('3 hosts reached this floor');
  });
});

it('names a loss by renting from oneself', () => {
  const host = {
    gpu: 'A100',
    strategy: 'fixed',
    cheat: null,
    quality: 1,
    weight_share: 0.5,
    value_share: 0.5,
    reward_usd: 1,
  };
  const section = selfRentalSection({
    weights: [
      { ...host, rents_itself: true, income_usd: 0, own_rentals_usd: 4.5 },
      { ...host, rents_itself: false, income_usd: 5, own_rentals_usd: 0 },
    ],
    run: { period_hours: 48 } as Parameters<typeof selfRentalSection>[0]['run'],
    scenario: { weights_worth_usd_per_hour: 1 } as Parameters<
      typeof selfRentalSection
    >[0]['scenario'],
  });
  expect(section.finding).toBe(
    'A provider that rented its own host lost $1.75 a day: $4.75 less than honest hosts with the same GPUs',
  );
});
