/** What an agent leaves unanswered that has shown itself. */
import { expect, it } from 'vitest';
import { createAgentClient } from '#shared/api/agent/agent-client.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { factsOf, sourcesWith } from '../../test/fixtures/check-facts.ts';
import { inventoryOf } from '../../test/fixtures/inventory.ts';
import { ask } from '../inspection/inspect.ts';
import type { Unanswered } from './measured.ts';
import { judgeAll } from './pipeline.ts';
import { untoldIn } from './untold.ts';

const PODS: Unanswered = { question: 'pods', problem: 'Not for you', repeated: false };

const told = (change: Partial<NonNullable<Inventory['sources']>>) =>
  sourcesWith({ cpus_present: 4, ...change });
const GPU = inventoryOf().gpu;

/** One run after the other. */
function runs(...each: Unanswered[][]) {
  let last: ReturnType<typeof judgeAll> | null = null;
  for (const unanswered of each) {
    const { streaks = {}, found = {} } = last ?? {};
    last = judgeAll(factsOf({ measured: { unanswered, streaks, found } }), 0);
  }
  const result = last?.report.checks.find(({ check_id: id }) => id === 'answers');
  return { verdict: last?.report.verdict, passed: result?.passed, measured: result?.measured };
}

it('costs as an agent that is not reached: the verdict, the third time in a row', () => {
  const proof: Unanswered = { question: 'proof', problem: 'socket hang up', repeated: false };
  expect(runs([PODS], [PODS])).toMatchObject({ verdict: 'verified', passed: true });
  expect(runs([PODS], [PODS], [proof, PODS])).toEqual({
    ...{ verdict: 'failed', passed: false },
    measured: 'proof: socket hang up; pods: Not for you',
  });
  expect(runs([PODS], [PODS], [], [PODS]).verdict).toBe('verified');
});

it('is seen once however often it is told again, and counts for nothing before its day', () => {
  const again = [{ ...PODS, repeated: true }];
  expect(runs([PODS], again, again, again, [PODS])).toMatchObject({ verdict: 'verified' });
  expect(runs([PODS], again, [PODS], again, [PODS]).verdict).toBe('failed');
  const from = (day: string) => ({ modes: { answers: { mode: 'enforce' as const, from: day } } });
  const third = { unanswered: [PODS], streaks: { answers: 2 } };
  const on = (day: string) => judgeAll(factsOf({ measured: third, checks: from(day) }), 0);
  expect([on('2026-12-01T00:00:00Z'), on('2030-01-01T00:00:00Z')]).toMatchObject([
    { report: { verdict: 'failed' } },
    { report: { verdict: 'verified' } },
  ]);
});

it.each<[string, Partial<Inventory>, string[]]>([
  ['processors', sourcesWith({ cpus_present: null, driver_gpus: [] }), ['processors']],
  ['the bus', told({ pci_gpus: null, driver_gpus: [] }), ['cards on the PCI bus']],
  ['the driver', told({ pci_gpus: 1, driver_gpus: null }), ['cards of the driver']],
  ['anything', { sources: null }, ['processors', 'cards on the PCI bus', 'cards of the driver']],
  ['cards of a driver that has none on the bus', told({ pci_gpus: 0, driver_gpus: null }), []],
  ['memory and disk', told({ driver_gpus: [] }), []],
  ['cards, having none', { ...told({ pci_gpus: null }), gpu: { ...GPU, driver: 'none' } }, []],
  ['cards, when it cannot read them', { ...told({}), gpu: { ...GPU, error: 'no answer' } }, []],
])(
  'asks of an inventory that says nothing of %s what every such host tells',
  (_, change, words) => {
    const { inventory } = factsOf({ inventory: change });
    const untold = inventory === null ? [] : untoldIn(inventory);
    expect(untold.map(({ question, problem }) => `${question}: ${problem}`)).toEqual(
      words.length === 0
        ? []
        : [`sources: nothing of the kernel’s own about its ${words.join(', ')}`],
    );
  },
);

it.each<[string, () => Promise<Response>, RegExp]>([
  ['a refusal', async () => refusal(), /^Not you$/],
  ['silence', () => Promise.reject(new Error('ECONNRESET')), /ECONNRESET/],
  ['another answer', async () => new Response('<html>'), /unknown form/],
])('takes %s for none', async (_, answer, problem) => {
  const client = createAgentClient({ send: answer, clock: createManualClock() });
  expect(await ask('pods', client.listPods())).toEqual({
    answer: null,
    unanswered: [{ question: 'pods', problem: expect.stringMatching(problem), repeated: false }],
  });
});

const refusal = () =>
  Response.json({ error: { code: 'forbidden', message: 'Not you', hint: 'x' } }, { status: 403 });

it('keeps no fault of our own for one of the agent’s', async () => {
  await expect(ask('pods', Promise.reject(new TypeError('ours')))).rejects.toThrow('ours');
});
