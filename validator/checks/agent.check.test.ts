/** Tests of requests that an agent leaves unanswered. */
import { expect, it } from 'vitest';
import { createAgentClient } from '#shared/api/agent/agent-client.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { factsOf, sourcesWith } from '../../test/fixtures/check-facts.ts';
import { inventoryOf } from '../../test/fixtures/inventory.ts';
import { query } from '../inspection/inspect.ts';
import { missingSources } from './agent.check.ts';
import type { Unanswered } from './measured.ts';
import { judgeAll } from './verdict.ts';

const PODS: Unanswered = { question: 'pods', problem: 'Not for you', repeated: false };

const sourcesOf = (change: Partial<NonNullable<Inventory['sources']>>) =>
  sourcesWith({ cpus_present: 4, ...change });
const GPU = inventoryOf().gpu;

/** Runs checks with each list of unanswered requests in turn. */
function runs(...each: Unanswered[][]) {
  let last: ReturnType<typeof judgeAll> | null = null;
  for (const unanswered of each) {
    const { streaks = {}, found = {} } = last ?? {};
    last = judgeAll(factsOf({ measured: { unanswered, streaks, found } }), 0);
  }
  const result = last?.report.checks.find(({ check_id: id }) => id === 'answers');
  return { verdict: last?.report.verdict, passed: result?.passed, measured: result?.measured };
}

it('fails an agent that leaves a request unanswered in three consecutive runs', () => {
  const proof: Unanswered = { question: 'proof', problem: 'socket hang up', repeated: false };
  expect(runs([PODS], [PODS])).toMatchObject({ verdict: 'verified', passed: true });
  expect(runs([PODS], [PODS], [proof, PODS])).toEqual({
    verdict: 'failed',
    passed: false,
    measured: 'proof: socket hang up; pods: Not for you',
  });
  expect(runs([PODS], [PODS], [], [PODS]).verdict).toBe('verified');
});

it('counts a repeated missing answer once, and enforces the check from the policy’s date on', () => {
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
  ['the bus', sourcesOf({ pci_gpus: null, driver_gpus: [] }), ['cards on the PCI bus']],
  ['the driver', sourcesOf({ pci_gpus: 1, driver_gpus: null }), ['cards of the driver']],
  ['anything', { sources: null }, ['processors', 'cards on the PCI bus', 'cards of the driver']],
  [
    'cards of the driver if the bus lists no card',
    sourcesOf({ pci_gpus: 0, driver_gpus: null }),
    [],
  ],
  ['memory and disk', sourcesOf({ driver_gpus: [] }), []],
  [
    'cards that the host does not have',
    { ...sourcesOf({ pci_gpus: null }), gpu: { ...GPU, driver: 'none' } },
    [],
  ],
  [
    'cards that the agent cannot read',
    { ...sourcesOf({}), gpu: { ...GPU, error: 'no answer' } },
    [],
  ],
])('reports missing sources of an inventory without %s', (_, change, words) => {
  const { inventory } = factsOf({ inventory: change });
  const missing = inventory === null ? [] : missingSources(inventory);
  expect(missing.map(({ question, problem }) => `${question}: ${problem}`)).toEqual(
    words.length === 0 ? [] : [`sources: no kernel data on: ${words.join(', ')}`],
  );
});

it.each<[string, () => Promise<Response>, RegExp]>([
  ['a refusal', async () => refusal(), /^Not you$/],
  ['no answer', () => Promise.reject(new Error('ECONNRESET')), /ECONNRESET/],
  ['an invalid answer', async () => new Response('<html>'), /Unexpected response/],
])('counts a request as unanswered after %s', async (_, answer, problem) => {
  const client = createAgentClient({ send: answer, clock: createManualClock() });
  expect(await query('pods', client.listPods())).toEqual({
    answer: null,
    unanswered: [{ question: 'pods', problem: expect.stringMatching(problem), repeated: false }],
  });
});

const refusal = () =>
  Response.json({ error: { code: 'forbidden', message: 'Not you', hint: 'x' } }, { status: 403 });

it('does not count an error of the validator as an unanswered request', async () => {
  await expect(query('pods', Promise.reject(new TypeError('ours')))).rejects.toThrow('ours');
});
