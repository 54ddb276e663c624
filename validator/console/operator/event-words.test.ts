import { expect, it } from 'vitest';
import { eventWords, type MarketEvent } from './event-words.ts';

const NODE = '00000000-0000-4000-8000-0000000000e1';

const CASES: [string, MarketEvent['details'], string, string[]][] = [
  [
    'rented',
    {
      actor: 'renter-3',
      pod: NODE,
      executor: NODE,
      gpus: 2,
      minutes: 95,
      price_uusd_per_hour: 680_000,
    },
    'renter-3 rented a pod',
    ['2 GPUs', 'for about 1 h 35 min', '$0.68 per hour'],
  ],
  [
    'refused',
    {
      actor: 'renter-1',
      code: 'no_executor_matches_spec',
      constraint: 'gpu_count',
      gpu: null,
      gpus: 1,
    },
    'renter-1 found no node',
    ['No executor matches spec', 'No node met “GPUs”', '1 GPU'],
  ],
  ['ended', { actor: 'renter-1', pod: NODE, code: null }, 'renter-1 deleted a pod', []],
  [
    'price',
    { actor: 'provider-2', executor: NODE, price_uusd: 1_250_000, code: null },
    'provider-2 changed the price',
    ['$1.25 per GPU and hour'],
  ],
  [
    'fault-dies',
    { executor: NODE, lasts_ms: 1_800_000 },
    'Fault: A node is down and loses its pods',
    ['lasts 30 min'],
  ],
  ['fault-clock', { by_s: -600 }, 'Fault: The wall clock jumps', ['back by 10 min']],
  ['repair', { executor: NODE, fault: 'flap' }, 'Fault ended: A node does not respond', []],
  [
    'validator-executor-health-check',
    { executor: NODE, verdict: 'failed', reason: 'GPU_MISSING AGENT_UNREACHABLE' },
    'The node failed its check',
    ['Gpu missing, Agent unreachable'],
  ],
  ['agent-put', { executor: NODE, pod: NODE }, 'The node receives a pod', []],
  ['a-new-kind', { executor: NODE, share: 3 }, 'A new kind', ['Share: 3']],
];

it.each(CASES)('describes %s in words', (kind, details, title, facts) => {
  expect(eventWords({ kind, details })).toEqual({ title, facts });
});
