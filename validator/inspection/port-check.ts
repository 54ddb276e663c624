/** Whether ports that pods get are reached from here: a sample, each of which has to answer for itself. */
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

/** How many ports are tried: fewer where the agent does not take as many (validator reference 5). */
const TIERS = [300, 50, 10] as const;
/** Of its range at most every second one, so that a pod that comes meanwhile finds ports; of small ranges all. */
const SMALL_RANGE = 20;
const MAX_PARALLEL = 200;
const OPEN_MS = 20_000;
/** Of one port, and of all of them. */
const CONNECT_MS = 5_000;
const ALL_MS = 18_000;
const NONCE_BYTES = 16;
const MAX_ANSWER_BYTES = 256;
const MAX_NAMED = 20;
const CONFLICT = 409;

/** What comes from a port until it ends. Rejects when it is not reached in time. */
export type AskPort = (host: string, port: number, signal: AbortSignal) => Promise<string>;

export type PortCheckDeps = {
  client: Pick<AgentClient, 'checkPorts'>;
  clock: Clock;
  random: Random;
  askPort: AskPort;
};

/** Rejects with ApiError where the agent neither opens ports nor is busy, and for what is our own fault. */
export async function checkPorts(
  deps: PortCheckDeps,
  { executor, inventory }: Facts & { inventory: object },
): Promise<Measured['ports']> {
  const { first, last } = inventory.ports;
  try {
    const check = await openPorts(deps, executor.id, { first, last });
    if (check === null) return { ...NONE, problem: 'the range of ports is none' };
    return await tryPorts(deps, executor.executor_ip_address, check);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== CONFLICT) throw error;
    return { ...NONE, problem: error.message, refused: true };
  }
}

const NONE = { opened: 0, reached: 0, refused: false, repeated: false };

type OpenCheck = { asked: PortCheckRequest; opened: PortCheckOpened['opened'] };

/** The largest sample that the agent takes; null for a range that is none. Rejects with the agent's refusal. */
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
  { clock, askPort }: PortCheckDeps,
  host: string,
  { asked, opened }: OpenCheck,
): Promise<Measured['ports']> {
  // An agent that names others than those asked for would choose its own sample.
  const ports = [...new Set(opened)].filter((port) => asked.ports.includes(port));
  const places = createSemaphore(MAX_PARALLEL);
  const all = clock.deadline(ALL_MS);
  const answers = await Promise.allSettled(
    ports.map((port) =>
      places.run(() => askPort(host, port, clock.deadline(CONNECT_MS, all)), all),
    ),
  );
  const lost = ports.filter((port, at) => {
    const answer = answers[at];
    return answer?.status !== 'fulfilled' || answer.value !== portAnswer(asked, port);
  });
  const more = lost.length > MAX_NAMED ? `, and ${lost.length - MAX_NAMED} more` : '';
  const problem =
    lost.length === 0 ? null : `not reached: ${lost.slice(0, MAX_NAMED).join(', ')}${more}`;
  const reached = ports.length - lost.length;
  return { opened: ports.length, reached, problem, refused: false, repeated: false };
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

export const askPort: AskPort = (host, port, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, signal });
    let answer = '';
    socket.setEncoding('utf8');
    socket.on('data', (text) => {
      answer += text;
      if (answer.length > MAX_ANSWER_BYTES) socket.destroy(new Error('too long an answer'));
    });
    socket.once('end', () => resolve(answer));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed without an answer')));
  });
