/** From the engine's time of a line to each of fifty followers, who are one process beside the agent. */
import { systemClock } from '#shared/clock.ts';
import type { BenchAgent } from './bench-agent.ts';
import { openLog, removeLogPod, startLogPod } from './log-pod.ts';
import { type BenchRow, ceilingRow, median } from './row.ts';

const FOLLOWERS = 50;
const LINES = 500;
const CEILING_MS = 20;
const PERCENTILE = 0.99;
const NS_PER_MS = 1e6;
/** About fifty lines a second. */
const SCRIPT = 'while :; do echo tick; usleep 20000 2>/dev/null || sleep 0.02; done';

/** The reference is the median of the same measurement: how far the tail is from the middle. */
export async function logLatency(agent: BenchAgent): Promise<BenchRow> {
  const { id } = await startLogPod(agent, SCRIPT);
  const leave = new AbortController();
  try {
    const followers = Array.from({ length: FOLLOWERS }, () => delays(agent, id, leave));
    const all = (await Promise.all(followers)).flat().toSorted((a, b) => a - b);
    const ours = all[Math.floor(all.length * PERCENTILE)] ?? Number.NaN;
    return ceilingRow(
      'log line to 50 followers, p99',
      'ms',
      'median of the same',
      { ours, reference: median(all) },
      CEILING_MS,
    );
  } finally {
    leave.abort();
    await removeLogPod(agent, id);
  }
}

/** Milliseconds of each line; the first ones, while others connect, are left out. */
async function delays(agent: BenchAgent, id: string, leave: AbortController): Promise<number[]> {
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
