/**
 * Checks that the ports of pods are reachable from the validator. Connects to a sample of ports, each of which answers
 * with a separate proof.
 */
import { connect } from 'node:net';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import {
  type PortCheckOpened,
  type PortCheckRequest,
  portAnswer,
} from '#shared/api/agent/host-checks.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { Facts } from '../checks/check.ts';
import type { Measured } from '../checks/measured.ts';

/** Sample sizes. If the agent rejects a sample as too large, the next smaller size is used. */
const TIERS = [300, 50, 10] as const;
/**
 * Largest range that is sampled completely. Of a larger range at most half is sampled, so that a new pod finds free
 * ports.
 */
const SMALL_RANGE = 20;
const MAX_PARALLEL = 200;
const OPEN_MS = 20_000;
/** Timeout of one port, and of the whole sample. */
const CONNECT_MS = 5_000;
const ALL_MS = 18_000;
const NONCE_BYTES = 16;
const MAX_ANSWER_BYTES = 256;
const MAX_NAMED = 20;
const CONFLICT = 409;

/** Reads from a port until the end of the stream. Rejects if it does not connect in time. */
export type ReadPort = (host: string, port: number, signal: AbortSignal) => Promise<string>;

export type PortCheckDeps = {
  client: Pick<AgentClient, 'checkPorts'>;
  clock: Clock;
  random: Random;
  readPort: ReadPort;
};

/**
 * Returns a 409 response of the agent as a refusal. Rejects for other errors of the agent, and for errors of the
 * validator.
 */
export async function checkPorts(
  deps: PortCheckDeps,
  { executor, inventory }: Facts & { inventory: object },
): Promise<Measured['ports']> {
  const { first, last } = inventory.ports;
  try {
    const check = await openPorts(deps, executor.id, { first, last });
    if (check === null) return { ...NONE, problem: 'the port range is empty' };
    return await tryPorts(deps, executor.executor_ip_address, check);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== CONFLICT) throw error;
    return { ...NONE, problem: error.message, refused: true };
  }
}

const NONE = { asked: 0, opened: 0, reached: 0, refused: false, others: null, repeated: false };

type OpenCheck = { asked: PortCheckRequest; opened: PortCheckOpened['opened'] };

/** Opens the largest sample that the agent accepts; null for an empty range. Rejects with the agent's refusal. */
async function openPorts(
  { client, random }: PortCheckDeps,
  executorId: string,
  range: { first: number; last: number },
): Promise<OpenCheck | null> {
  for (const [at, tier] of TIERS.entries()) {
    const asked = {
      nonce: randomToken(random, NONCE_BYTES),
      executor_id: executorId,
      ports: sampleOf(range, tier, random),
      open_ms: OPEN_MS,
    };
    if (asked.ports.length === 0) return null;
    try {
      return { asked, opened: (await client.checkPorts(asked)).opened };
    } catch (error) {
      const isTooLarge = error instanceof ApiError && error.code === 'validation_error';
      if (!isTooLarge || at === TIERS.length - 1) throw error;
    }
  }
  return null;
}

async function tryPorts(
  { clock, readPort }: PortCheckDeps,
  host: string,
  { asked, opened }: OpenCheck,
): Promise<Measured['ports']> {
  // Ignores ports that were not requested: an agent must not choose its own sample.
  const ports = [...new Set(opened)].filter((port) => asked.ports.includes(port));
  const limit = createSemaphore(MAX_PARALLEL);
  const all = clock.deadline(ALL_MS);
  const answers = await Promise.allSettled(
    ports.map((port) =>
      limit.run(() => readPort(host, port, clock.deadline(CONNECT_MS, all)), all),
    ),
  );
  const unreachable = ports.filter((port, at) => {
    const answer = answers[at];
    return answer?.status !== 'fulfilled' || answer.value !== portAnswer(asked, port);
  });
  const more = unreachable.length > MAX_NAMED ? `, and ${unreachable.length - MAX_NAMED} more` : '';
  const problem =
    unreachable.length === 0
      ? null
      : `not reached: ${unreachable.slice(0, MAX_NAMED).join(', ')}${more}`;
  const reached = ports.length - unreachable.length;
  return {
    asked: asked.ports.length,
    opened: ports.length,
    reached,
    problem,
    refused: false,
    others: null,
    repeated: false,
  };
}

function sampleOf(
  { first, last }: { first: number; last: number },
  tier: number,
  random: Random,
): number[] {
  const size = last - first + 1;
  if (first < 1 || last > 65_535 || size < 1) return [];
  const most = size <= SMALL_RANGE ? size : Math.floor(size / 2);
  const ports = new Set<number>();
  while (ports.size < Math.min(tier, most)) ports.add(first + random.int(size));
  return [...ports];
}

export const readPort: ReadPort = (host, port, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, signal });
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (text) => {
      answer += text;
      if (answer.length > MAX_ANSWER_BYTES) socket.destroy(new Error('the answer is too long'));
    });
    socket.once('end', () => resolve(answer));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed without an answer')));
  });
