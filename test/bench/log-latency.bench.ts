/** Time from the engine's timestamp of a line to each of fifty followers, which share one process beside the agent. */
import { spawn } from 'node:child_process';
import { parseIsoTime, systemClock } from '#shared/runtime/clock.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { removePods } from '../fakes/agents/launch-pod.ts';
import { type Row, ratioAtMost } from '../measure/row.ts';
import { openLog, startLogPod } from './log-pod.ts';

const FOLLOWERS = 50;
const LINES = 500;
const MAX_RATIO = 5;
const PERCENTILE = 0.99;
const NS_PER_MS = 1e6;
/** Writes about fifty lines a second. */
const SCRIPT = 'while :; do echo tick; sleep 0.02; done';

/** Measures the followers while the reference reads the same pod, so that load on the host affects both alike. */
export async function logLatency(agent: AgentProcess): Promise<Row> {
  const { id, container_id: container } = await startLogPod(agent, SCRIPT);
  const leave = new AbortController();
  try {
    const followers = Array.from({ length: FOLLOWERS }, () => delays(agent, id, leave));
    const [reference, ...ours] = await Promise.all([dockerDelays(container ?? ''), ...followers]);
    return ratioAtMost(
      'log line to 50 followers, p99',
      'ms',
      'docker logs --follow, one reader',
      { ours: percentile(ours.flat()), reference: percentile(reference) },
      MAX_RATIO,
    );
  } finally {
    leave.abort();
    await removePods(agent, [id]);
  }
}

/** Delay of each line in milliseconds, without the first lines, during which followers still connect. */
async function delays(agent: AgentProcess, id: string, leave: AbortController): Promise<number[]> {
  const body = await openLog(agent, id, 'tail=0&follow=true', leave.signal);
  const found: number[] = [];
  for await (const chunk of body) {
    const nowMs = systemClock.now();
    for (const [, ns] of Buffer.from(chunk)
      .toString('latin1')
      .matchAll(/"id":"\w+\.(\d+)\./g)) {
      found.push(nowMs - Number(ns) / NS_PER_MS);
    }
    if (found.length >= LINES) break;
  }
  return found.slice(FOLLOWERS);
}

/**
 * Delays of the lines in `docker logs`. The timestamps are truncated to milliseconds, which adds half a millisecond to
 * the mean delay.
 */
async function dockerDelays(container: string): Promise<number[]> {
  const found: number[] = [];
  const options = ['logs', '--follow', '--timestamps', '--tail', '0', container];
  const child = spawn('docker', options, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const chunk of child.stdout) {
    const nowMs = systemClock.now();
    for (const [time] of chunk.toString('latin1').matchAll(/^\S+(?= )/gm)) {
      found.push(nowMs - (parseIsoTime(time) ?? Number.NaN));
    }
    if (found.length >= LINES) break;
  }
  child.kill();
  return found.slice(FOLLOWERS);
}

function percentile(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * PERCENTILE)] ?? Number.NaN;
}
