/** Tests the parts of pages: texts, words, plots and sections. */
import { describe, expect, it } from 'vitest';
import { aroundFault } from './around-fault.ts';
import { barChart, intervalChart, wrapped } from './bars.ts';
import { isEmpty, type Section, sectionHtml } from './section.ts';
import { NARROW, stepChart, WIDE } from './svg.ts';
import { clockTime, gpuPrice, percent, percentagePoints, tickUsd, timeRange, usd } from './text.ts';
import { cheatWords, checkWords, faultWords, outcomeWords, refusalWords } from './words.ts';

describe('texts', () => {
  it('have one format for amounts of money', () => {
    expect([2826.12, 3110, -0.001, -41.234].map(usd)).toEqual([
      '$2,826.12',
      '$3,110.00',
      '$0.00',
      '-$41.23',
    ]);
    expect([0.402, 1.2].map(gpuPrice)).toEqual(['$0.402', '$1.200']);
    expect([0.05, 4, 3000].map(tickUsd)).toEqual(['$0.05', '$4', '$3,000']);
  });

  it('have times of the run, and differences of shares', () => {
    expect([0, 30, 41.999, 72.25].map(clockTime)).toEqual([
      'day 1, 00:00',
      'day 2, 06:00',
      'day 2, 18:00',
      'day 4, 00:15',
    ]);
    expect([timeRange(30, 42), timeRange(30, 54)]).toEqual([
      'day 2, 06:00 to 18:00',
      'day 2, 06:00 to day 3, 06:00',
    ]);
    expect(percentagePoints(-1e-17)).toBe('0 percentage points');
    expect(percentagePoints(0.0422)).toBe('4.22 percentage points');
    expect([0.0422, 0.99, 0.99959, 0.999999, 1].map(percent)).toEqual([
      '4.22 %',
      '99 %',
      '99.96 %',
      'more than 99.99 %',
      '100 %',
    ]);
  });
});

it('names codes in words', () => {
  expect(refusalWords('gpu_type')).toBe('no free host had the requested GPU model');
  expect(outcomeWords('CREATION_FAILED start_failed')).toBe(
    'never started: the container did not start',
  );
  expect(cheatWords('other_model')).toBe('reports another model');
  expect(checkWords('GPU_NEW_CODE')).toBe('GPU new code');
  expect(checkWords('PORTS_CLOSED CLOCK_SKEW')).toBe(
    'ports are closed, the clock of the host is wrong',
  );
  expect(faultWords('dies')).toBe(
    'host was down and lost its pods, which were started again after it',
  );
});

describe('plots', () => {
  const axis = { label: 'USD', format: usd };
  it('wrap labels instead of cutting them, on wide and on narrow screens', () => {
    const label = 'Gain by renting from oneself, in USD for each host and each simulated day';
    for (const plot of [
      barChart([{ label, value: 3 }], axis),
      intervalChart([{ label, mean: 1, low: -1, high: 2 }], axis),
    ]) {
      for (const frame of [WIDE, NARROW]) {
        const texts = [...plot(frame).matchAll(/class="label" x="8"[^>]*>([^<]*)</g)];
        expect(texts.map(([, text]) => text).join(' ')).toBe(label);
        expect(plot(frame)).toContain(`viewBox="0 0 ${frame.width} `);
      }
    }
    expect(wrapped('one two three', 7)).toEqual(['one two', 'three']);
  });

  it('shade the faults within their axis', () => {
    const series = [
      {
        name: 'a',
        points: [
          [0, 1],
          [3, 2],
        ] as const,
      },
    ];
    const bands = [
      { number: 1, from: 1, to: 1.5 },
      { number: 2, from: 2, to: 2 },
      { number: 3, from: 7, to: 8 },
    ];
    const svg = stepChart(series, { x: axis, y: axis, bands })(WIDE);
    expect(svg.match(/class="band"/g)).toHaveLength(2);
    expect(svg).toContain('width="2"');
  });
});

describe('sections', () => {
  const section: Section = {
    id: 'a',
    finding: 'Nothing <happened>',
    notes: [],
    plot: null,
    legend: [],
    table: { head: [], rows: [] },
  };
  it('are empty without a plot and without rows', () => {
    expect(isEmpty(section)).toBe(true);
    const openTables = [{ caption: 'b', table: { head: ['c'], rows: [['d']] } }];
    expect(isEmpty({ ...section, openTables })).toBe(false);
    const html = sectionHtml({ ...section, openTables });
    expect(html).toContain('<h2>Nothing &lt;happened&gt;</h2>');
    expect(html).toContain('<h3>b</h3>');
    expect(html).not.toContain('<details>');
  });
});

it('compares the market before, during and after a fault, for equal times', () => {
  const fault = { from_hours: 2, to_hours: 4, region: 'eu' };
  const hours = [1, 2, 3, 4, 5, 6, 7];
  const regions = hours.flatMap((at) =>
    ['eu', 'us'].map((region) => ({
      at_hours: at,
      region,
      hosts: 2,
      gpus: 4,
      verified_gpus: region === 'eu' && (at === 3 || at === 4) ? 0 : 4,
      rented_gpus: 1,
      free_gpus: region === 'eu' && (at === 3 || at === 4) ? 0 : 3,
      accepted: region === 'us' ? 1 : 0,
      interruptions: at === 7 ? 1 : 0,
    })),
  );
  const requests = hours.map((at) => ({ at_hours: at, requested: 2, refused: at === 3 ? 1 : 0 }));
  const run = { period_hours: 7 } as Parameters<typeof aroundFault>[0]['run'];
  const around = (change: object) =>
    aroundFault({ regions, requests, market: [], run }, { ...fault, ...change } as Parameters<
      typeof aroundFault
    >[1]);
  const rows = new Map(around({})?.table.rows.map(([name = '', ...values]) => [name, values]));
  expect(rows.get('Region eu: GPUs of hosts that passed inspection, mean')).toEqual([
    '4',
    '0',
    '4',
  ]);
  expect(rows.get('Region eu: free GPUs that could be rented, mean')).toEqual(['3', '0', '3']);
  expect(rows.get('Region eu: share of the rentable GPUs that was rented')).toEqual([
    '25 % of 4',
    '100 % of 1',
    '25 % of 4',
  ]);
  expect(rows.get('Other regions: new rentals, per 24 hours')).toEqual(['24', '24', '24']);
  expect(rows.get('All regions: refused requests')).toEqual([
    '0 of 4 (0 %)',
    '1 of 4 (25 %)',
    '0 of 4 (0 %)',
  ]);
  expect(rows.get('Region eu: interrupted pods')).toEqual(['0', '0', '0']);
  expect(around({ to_hours: 3 })).toBeNull();
});
