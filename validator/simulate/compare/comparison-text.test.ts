import { describe, expect, it } from 'vitest';
import { comparedCells, seedTable, verdictSentence } from './comparison-text.ts';
import { SHARE } from './headline-figures.ts';
import { comparePairs } from './paired.ts';

const A = { name: 'last-release', path: 'a.json' };
const B = { name: 'default-policy', path: 'b.json' };
const figure = {
  name: 'Refused rentals',
  valueIn: () => null,
  ...SHARE,
};
type Pairs = Parameters<typeof comparePairs>[0];
const verdict = (pairs: Pairs, better?: 'higher' | 'lower') =>
  verdictSentence(
    {
      figure: { ...figure, ...(better && { better }) },
      values: [],
      difference: comparePairs(pairs),
    },
    A,
    B,
  );

const LOWER: Pairs = [
  [0.3, 0.1],
  [0.32, 0.12],
  [0.34, 0.13],
];

describe('verdict', () => {
  it('names the better side with the interval in percentage points', () => {
    expect(verdict(LOWER, 'lower')).toBe(
      'Refused rentals: better (lower) with default-policy. 32 % with last-release, 11.7 % with default-policy; 95 % interval of the difference: -21.8 to -18.9 percentage points.',
    );
    expect(verdict(LOWER, 'higher')).toContain('worse (lower) with default-policy');
    expect(verdict(LOWER)).toContain('Refused rentals: lower with default-policy');
  });

  it('states that no difference was seen, or that all seeds are equal', () => {
    const unclear: Pairs = [
      [0.1, 0.2],
      [0.2, 0.1],
      [0.1, 0.1],
    ];
    expect(verdict(unclear, 'lower')).toContain(
      'a difference is not certain, because the interval includes zero',
    );
    const equal: Pairs = [
      [0.1, 0.1],
      [0.2, 0.2],
    ];
    expect(verdict(equal)).toBe('Refused rentals: equal, 15 %.');
    const missing = verdictSentence({ figure, values: [], difference: null }, A, B);
    expect(missing).toContain('not measured');
  });

  it('is a cell of the table', () => {
    const cells = comparedCells({
      figure: { ...figure, better: 'lower' },
      values: [],
      difference: comparePairs(LOWER),
    });
    expect(cells[3]).toBe('-20.3 percentage points');
    expect(cells.at(-1)).toBe('B is better');
  });
});

describe('values of each seed', () => {
  it('have a row for each side, and one row for a figure that is equal', () => {
    const values = [
      { seed: 1, a: 0.1, b: 0.2 },
      { seed: 3, a: 0.3, b: null },
    ];
    const equal = [
      { seed: 1, a: 0.5, b: 0.5 },
      { seed: 3, a: null, b: null },
    ];
    const rows = [values, equal].map((each) => ({ figure, values: each, difference: null }));
    expect(seedTable(rows, [1, 3])).toEqual({
      head: ['Figure', 'Side', 'Seed 1', 'Seed 3'],
      rows: [
        ['Refused rentals', 'A', '10 %', '30 %'],
        ['Refused rentals', 'B', '20 %', '-'],
        ['Refused rentals', 'A and B', '50 %', '-'],
      ],
    });
  });
});
