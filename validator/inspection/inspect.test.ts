/** Classification of peers that answer, but not as a valid agent. */
import { expect, it } from 'vitest';
import { createAgentClient } from '#shared/api/agent/agent-client.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { readAgent } from './inspect.ts';

const { executor, policy } = checkRun({ atMs: 1_000 }).facts;

/** Inspects through a client for which `answer` produces every response. */
async function inspected(answer: () => Promise<Response>) {
  const clock = createManualClock();
  const { inventory, transportError, refusal } = await readAgent(executor, {
    client: createAgentClient({ send: answer, clock }),
    identityOf: () => Promise.reject(new Error('not called')),
    observePort: async () => ({ found: 'refused', sent: 'tls' }),
    readBanner: async () => null,
    clock,
    policy,
  });
  return { inventory, transportError, refusal };
}

const refusal = (code: string) =>
  Response.json({ error: { code, message: 'Not you', hint: 'x' } }, { status: 403 });

it.each<[string, () => Promise<Response>, string | null, RegExp]>([
  [
    'a missing answer',
    () => Promise.reject(new Error('ECONNREFUSED')),
    null,
    /did not answer \(ECONNREF/,
  ],
  [
    'another object',
    async () => Response.json({ executor_id: 5 }),
    'AGENT_ANSWER_INVALID',
    /Unexpected response from the node \(executor_id: /,
  ],
  [
    'no JSON',
    async () => new Response('<html>'),
    'AGENT_ANSWER_INVALID',
    /Unexpected response from the node \(the body/,
  ],
  [
    'an undocumented status',
    async () => new Response('bad gateway', { status: 502 }),
    'AGENT_ANSWER_INVALID',
    /Unexpected response from the node$/,
  ],
  ['a refusal', async () => refusal('forbidden'), 'AGENT_REFUSED', /Not you/],
])('classifies %s', async (_, answer, reason, words) => {
  expect(await inspected(answer)).toEqual({
    inventory: null,
    transportError: expect.stringMatching(words),
    refusal: reason,
  });
});
