/** Checks of the network of a host. */
import { expect, it } from 'vitest';
import { type Failing, factsOf, resultOf } from '../../test/fixtures/check-facts.ts';
import type { LineFacts, Measured } from './measured.ts';

const SHUT = {
  asked: 0,
  opened: 0,
  reached: 0,
  problem: 'busy',
  refused: true,
  others: null,
  repeated: false,
};
const UNREACHED = {
  registry: 'unreachable',
  problem: 'no answer',
  others: null,
  repeated: false,
} as const;
const LINE: LineFacts = {
  samples: 3,
  down_kbit: 200_000,
  up_kbit: 200_000,
  last_down_kbit: 200_000,
  last_up_kbit: 200_000,
  false_stream: null,
  refusals: 0,
  others_down_kbit: 900_000,
  others_up_kbit: 900_000,
  measured_ms: 1,
  repeated: false,
};
/** Line of which every measurement was aborted, although other executors could be measured. */
const NEVER: LineFacts = { ...LINE, samples: 0, measured_ms: null };
const templates = (state: 'present' | 'missing' | 'unknown') => ({
  images: [{ image: 'ubuntu:24.04', state, problem: '' }],
  unavailable: [] as string[],
  repeated: false,
});

const rangeOf = (first: number, last: number) => ({ ports: { first, last, free: 0 } });
const opened = (count: number, reached = count, asked = 50) => ({
  ports: { ...SHUT, asked, opened: count, reached, refused: false, problem: null },
  streaks: { ports: 2 },
});

it.each<Failing>([
  ['ports', 'PORTS_REFUSED', { measured: { ports: SHUT, streaks: { ports: 2 } } }],
  ['ports', 'PORTS_REFUSED', { measured: opened(0) }],
  ['ports', 'PORTS_REFUSED', { measured: opened(39) }],
  ['ports', 'PORTS_REFUSED', { measured: opened(1, 1, 2), inventory: rangeOf(20_000, 20_001) }],
  ['ports', 'PORTS_REFUSED', { measured: opened(0, 0, 0), inventory: rangeOf(20_001, 20_000) }],
  ['ports', 'PORTS_PARTIAL', { measured: opened(2, 1, 2), inventory: rangeOf(20_000, 20_001) }],
  [
    'ports',
    'PORTS_PARTIAL',
    {
      measured: {
        ports: { ...SHUT, asked: 300, opened: 300, reached: 239, refused: false },
        streaks: { ports: 1 },
      },
    },
  ],
  ['egress', 'REGISTRY_UNREACHABLE', { measured: { egress: UNREACHED, streaks: { egress: 1 } } }],
  [
    'template_cache',
    'TEMPLATE_NOT_CACHED',
    { measured: { templates: templates('missing'), streaks: { template_cache: 1 } } },
  ],
  ['bandwidth', 'BANDWIDTH_LOW', { measured: { line: { ...LINE, up_kbit: 49_000 } } }],
  [
    'bandwidth',
    'BANDWIDTH_LOW',
    { measured: { line: { ...LINE, up_kbit: 99_000 }, streaks: { bandwidth: 1 } } },
  ],
  ['bandwidth', 'BANDWIDTH_REFUSED', { measured: { line: { ...LINE, refusals: 3 } } }],
  ['bandwidth', 'BANDWIDTH_REFUSED', { measured: { line: NEVER, streaks: { bandwidth: 5 } } }],
])('%s fails with %s', (id, reason, change) => {
  const result = resultOf(id, factsOf(change));
  expect([result.passed, result.reason_code]).toEqual([false, reason]);
  expect(result.remediation).toMatch(/\w+ \w+/);
});

it('passes a line that was slow once, or that is as fast as the validator’s own line', () => {
  const slow = (line: LineFacts) => resultOf('bandwidth', factsOf({ measured: { line } }));
  expect(slow({ ...LINE, down_kbit: 60_000 })).toMatchObject({ passed: true, streak: 1 });
  expect(slow({ ...LINE, down_kbit: 60_000, others_down_kbit: 60_000 }).message).toBe('unknown');
  expect(slow(NEVER)).toMatchObject({ passed: true, streak: 1 });
  expect(slow({ ...NEVER, others_down_kbit: 0 }).message).toBe('unknown');
});

it('requires a share of the sampled ports', () => {
  const most = { measured: opened(45, 40) };
  expect(resultOf('ports', factsOf(most))).toMatchObject({ passed: true, severity: 'warning' });
  const small = { measured: opened(2, 2, 2), inventory: rangeOf(20_000, 20_001) };
  expect(resultOf('ports', factsOf(small))).toMatchObject({ passed: true, message: 'passed' });
  const seldom = { ...opened(0), streaks: { ports: 1 } };
  expect(resultOf('ports', factsOf({ measured: seldom })).passed).toBe(true);
});

it('ignores images whose registry does not answer', () => {
  const message = (state: 'present' | 'missing' | 'unknown') =>
    resultOf('template_cache', factsOf({ measured: { templates: templates(state) } })).message;
  expect([message('present'), message('unknown')]).toEqual(['passed', 'unknown']);
  expect(message('missing')).toMatch(/seen 1 of 2/);
});

it('does not fail a host for what most other hosts do not reach either', () => {
  const streaks = { ports: 5, egress: 5, template_cache: 5 };
  const message = (id: string, measured: Partial<Measured>) =>
    resultOf(id, factsOf({ measured: { ...measured, streaks } })).message;
  const shut = { ...SHUT, asked: 50, opened: 50, refused: false };
  const ports = (tried: number, reached: number) =>
    message('ports', { ports: { ...shut, others: { tried, reached } } });
  expect([ports(1, 0), ports(9, 4)]).toEqual(['unknown', 'unknown']);
  expect(new Set([ports(0, 0), ports(2, 1)])).toEqual(new Set(['No port of pods is reachable']));
  const egress = (tried: number, reached: number) =>
    message('egress', { egress: { ...UNREACHED, others: { tried, reached } } });
  expect([egress(3, 1), egress(3, 2)]).toEqual(['unknown', 'No registry answers the host']);
  const cached = (unavailable: string[]) =>
    message('template_cache', { templates: { ...templates('missing'), unavailable } });
  expect([cached(['ubuntu:24.04']), cached(['debian:12'])]).toEqual([
    'unknown',
    'Templates cannot be started',
  ]);
});
