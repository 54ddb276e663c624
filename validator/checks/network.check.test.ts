/** Checks of the network of a host. */
import { expect, it } from 'vitest';
import { type Failing, factsOf, resultOf } from '../../test/fixtures/check-facts.ts';
import type { LineFacts } from './measured.ts';

const SHUT = { opened: 0, reached: 0, problem: 'busy', refused: true, repeated: false };
const UNREACHED = { registry: 'unreachable', problem: 'no answer', repeated: false } as const;
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
  repeated: false,
});

const rangeOf = (first: number, last: number) => ({ ports: { first, last, free: 0 } });
const opened = (count: number, reached = count) => ({
  ports: { ...SHUT, opened: count, reached, refused: false, problem: null },
  streaks: { ports: 2 },
});

it.each<Failing>([
  ['ports', 'PORTS_REFUSED', { measured: { ports: SHUT, streaks: { ports: 2 } } }],
  ['ports', 'PORTS_REFUSED', { measured: opened(0) }],
  ['ports', 'PORTS_REFUSED', { measured: opened(2) }],
  ['ports', 'PORTS_REFUSED', { measured: opened(1), inventory: rangeOf(20_000, 20_001) }],
  ['ports', 'PORTS_REFUSED', { measured: opened(0), inventory: rangeOf(20_001, 20_000) }],
  ['ports', 'PORTS_PARTIAL', { measured: opened(2, 1), inventory: rangeOf(20_000, 20_001) }],
  [
    'ports',
    'PORTS_PARTIAL',
    {
      measured: {
        ports: { ...SHUT, opened: 300, reached: 2, refused: false },
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

it('requires no more ports than a small range has', () => {
  const small = { measured: opened(2), inventory: rangeOf(20_000, 20_001) };
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
