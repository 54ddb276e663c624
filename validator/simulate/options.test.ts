import { describe, expect, it } from 'vitest';
import { parseCompareOptions, parseSimulateOptions } from './options.ts';

const HOUR_MS = 3_600_000;

describe('options of a simulation', () => {
  it.each([
    ['36h', { kind: 'time', afterMs: 36 * HOUR_MS }],
    ['1.5d', { kind: 'time', afterMs: 36 * HOUR_MS }],
    ['1200', { kind: 'number', event: 1_200 }],
    ['fault-region', { kind: 'event', event: 'fault-region' }],
  ])('ends a run at %s', (text, until) => {
    expect(parseSimulateOptions(['--until', text]).until).toEqual(until);
  });

  it('refuses an end that is neither a time nor an event', () => {
    expect(() => parseSimulateOptions(['--until', '3 weeks'])).toThrow(
      '--until "3 weeks": must be',
    );
  });

  it('accepts a trace of two files', () => {
    expect(parseSimulateOptions(['--trace', 'a', '--trace', 'b']).trace).toEqual(['a', 'b']);
  });
});

describe('options of a comparison', () => {
  it('has two sides and seeds', () => {
    const options = parseCompareOptions(['a.json', 'b.json', '--seeds', '4,7']);
    expect(options).toMatchObject({ a: 'a.json', b: 'b.json', seeds: [4, 7] });
  });

  it.each([
    [['a.json'], 'compare needs two'],
    [['a', 'b', '--seeds', '1'], '2 to 31 different'],
    [['a', 'b', '--seeds', '1,1'], '2 to 31 different'],
    [['a', 'b', '--policy', 'c'], 'unknown option --policy'],
  ])('refuses %j', (argv, message) => {
    expect(() => parseCompareOptions(argv)).toThrow(message);
  });
});
