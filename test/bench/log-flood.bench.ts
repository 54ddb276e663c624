/**
 * Requests about a quiet pod while its neighbour floods its log and the neighbour's renter follows the flood, compared
 * with the same requests without the flood.
 */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { systemClock } from '#shared/runtime/clock.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { removePods } from '../fakes/agents/launch-pod.ts';
import { type Row, ratioAtMost } from '../measure/row.ts';
import { startLogPod } from './log-pod.ts';

const ROUNDS = 4;
const REQUESTS_PER_ROUND = 75;
/** Time for the flood to reach its speed. */
const SETTLE_MS = 2_000;
/**
 * Pause between two requests, as of a portal that refreshes. Without pauses, the requests would wait for each other.
 */
const PAUSE_MS = 10;
const PERCENTILE = 0.95;
const MAX_RATIO = 2;
const NEIGHBOUR = 'seq 1 1000; exec sleep 100000';
/** Lines of 92 bytes as fast as the engine accepts them. */
const FLOOD = 'exec yes "$(seq 1 50 | tr -d "\\n")"';

type Times = { pod: number[]; log: number[]; metrics: number[] };
const none = (): Times => ({ pod: [], log: [], metrics: [] });

/** Measures in rounds that alternate with the reference, so that load on the host affects both alike. */
export async function logFlood(agent: AgentProcess): Promise<Row[]> {
  const [loud, quiet] = [none(), none()];
  const { id } = await startLogPod(agent, NEIGHBOUR);
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      await request(agent, id, quiet);
      await underFlood(agent, () => request(agent, id, loud));
    }
  } finally {
    await removePods(agent, [id]);
  }
  return [
    row("a pod's page under a neighbour's log flood, p95", loud.pod, quiet.pod),
    row('1,000 log lines under the flood, p95', loud.log, quiet.log),
    row("a pod's metrics under the flood, p95", loud.metrics, quiet.metrics),
  ];
}

function row(name: string, loud: readonly number[], quiet: readonly number[]): Row {
  const measured = { ours: percentile(loud), reference: percentile(quiet) };
  return ratioAtMost(name, 'ms', 'the same without the flood', measured, MAX_RATIO);
}

async function underFlood(agent: AgentProcess, work: () => Promise<void>): Promise<void> {
  const { id } = await startLogPod(agent, FLOOD);
  const leave = await follow(agent, id);
  try {
    await systemClock.sleep(SETTLE_MS);
    await work();
  } finally {
    leave();
    await removePods(agent, [id]);
  }
}

/** Discards the log as fast as it arrives, until the returned function is called. */
async function follow(agent: AgentProcess, id: string): Promise<() => void> {
  const path = `/v1/pods/${id}/logs?tail=0&follow=true`;
  const headers = await agent.signedHeaders(path);
  const request = get(agent.origin + path, { headers });
  const [response]: IncomingMessage[] = await once(request, 'response');
  if (response?.statusCode !== 200) throw new Error(`log refused: ${response?.statusCode}`);
  response.on('error', () => undefined).resume();
  return () => request.on('error', () => undefined).destroy();
}

async function request(agent: AgentProcess, id: string, times: Times): Promise<void> {
  const parts = { pod: '', log: '/logs?tail=1000', metrics: '/metrics' };
  for (let count = 0; count < REQUESTS_PER_ROUND; count += 1) {
    for (const part of ['pod', 'log', 'metrics'] as const) {
      const beganMs = systemClock.monotonicMs();
      const response = await agent.send({ method: 'GET', path: `/v1/pods/${id}${parts[part]}` });
      if (!response.ok) throw new Error(`refused: ${response.status}`);
      await response.arrayBuffer();
      times[part].push(systemClock.monotonicMs() - beganMs);
      await systemClock.sleep(PAUSE_MS);
    }
  }
}

function percentile(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * PERCENTILE)] ?? Number.NaN;
}
