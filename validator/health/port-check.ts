/** Whether ports that pods get are reached from here: a sample, each of which has to answer for itself. */
import { connect } from 'node:net';
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import { portAnswer } from '#shared/agent-api/port-checks.ts';
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import { type Random, randomToken } from '#shared/random.ts';
import type { Facts } from '../checks/check.ts';
import type { Measured } from '../checks/measured.ts';

const SAMPLE = 10;
const OPEN_MS = 10_000;
const CONNECT_MS = 5_000;
const NONCE_BYTES = 16;
const MAX_ANSWER_BYTES = 256;

/** What comes from a port until it ends. Rejects when it is not reached in time. */
export type AskPort = (host: string, port: number, signal: AbortSignal) => Promise<string>;

export type PortCheckDeps = {
  client: Pick<AgentClient, 'checkPorts'>;
  clock: Clock;
  random: Random;
  askPort: AskPort;
};

/** Null where the agent does not let its ports be tried. Rejects only for what is our own fault. */
export async function checkPorts(
  { client, clock, random, askPort }: PortCheckDeps,
  { executor, inventory }: Facts & { inventory: object },
): Promise<Measured['ports']> {
  const { first, last } = inventory.ports;
  const asked = {
    nonce: randomToken(random, NONCE_BYTES),
    executor_id: executor.id,
    ports: sampleOf(first, last, random),
    open_ms: OPEN_MS,
  };
  if (asked.ports.length === 0) return null;
  try {
    const { opened } = await client.checkPorts(asked);
    // An agent that names others than those asked for would choose its own sample.
    const ports = [...new Set(opened)].filter((port) => asked.ports.includes(port));
    const signal = clock.deadline(CONNECT_MS);
    const host = executor.executor_ip_address;
    const answers = await Promise.allSettled(ports.map((port) => askPort(host, port, signal)));
    const lost = ports.filter((port, at) => {
      const answer = answers[at];
      return answer?.status !== 'fulfilled' || answer.value !== portAnswer(asked, port);
    });
    const problem = lost.length === 0 ? null : `not reached: ${lost.join(', ')}`;
    const reached = ports.length - lost.length;
    return { opened: ports.length, reached, problem, repeated: false };
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

function sampleOf(first: number, last: number, random: Random): number[] {
  const size = last - first + 1;
  if (first < 1 || last > 65_535 || size < 1) return [];
  const ports = new Set<number>();
  while (ports.size < Math.min(SAMPLE, size)) ports.add(first + random.int(size));
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
