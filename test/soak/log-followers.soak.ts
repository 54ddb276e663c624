/** Memory and open file descriptors of an agent while renters follow the logs of eight busy pods for a long time. */
import { readdirSync, readlinkSync } from 'node:fs';
import { systemClock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { openLog, startLogPod } from '../bench/log-pod.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { removePods } from '../fakes/agents/launch-pod.ts';
import { residentMb } from '../measure/process-usage.ts';
import { figureAtMost, finding, growth, median, type Row, type Sample } from '../measure/row.ts';

const PODS = 8;
const FOLLOWERS_PER_POD = 2;
/** A thousand lines a second, in bursts as programs write them. */
const SCRIPT =
  'while :; do yes "a line of some length, as programs write them while they work" | head -n 100; sleep 0.1; done';
const MS_PER_MINUTE = 60_000;
const SAMPLE_MS = 5_000;
/** Share of the run during which caches and heaps reach their usual size. */
const WARM_UP_SHARE = 0.3;
const SLOPE_PER_MS = 10 * MS_PER_MINUTE;
const MEMORY_CEILING_MB = 180;
const SLOPE_CEILING_MB = 1;
/** Additional descriptors of a reconcile in progress, which has some connections open. */
const DESCRIPTOR_SLACK = 2;

/** Number of log files per pod that the agent has open at most: the current file and three rotated ones. */
const LOG_FILES_PER_POD = 4;
const LOG_FILE = /-json\.log/;

type Figures = { memory: Sample[]; descriptors: Sample[]; logFiles: Sample[] };

export async function logFollowers(
  agent: AgentProcess,
  minutes: number,
  print: (line: string) => void,
): Promise<Row[]> {
  const leave = new AbortController();
  const pods: string[] = [];
  try {
    for (let count = 0; count < PODS; count += 1) pods.push((await startLogPod(agent, SCRIPT)).id);
    const followers = pods.flatMap((id) =>
      Array.from({ length: FOLLOWERS_PER_POD }, () => follow(agent, id, leave.signal)),
    );
    const figures = await sample(agent, minutes * MS_PER_MINUTE);
    leave.abort();
    const bytes = await Promise.all(followers);
    print(`agent memory by the minute, MB: ${byMinute(figures.memory)}`);
    return rowsOf(figures, Math.min(...bytes));
  } finally {
    leave.abort();
    await removePods(agent, pods);
  }
}

/** Resolves with the number of bytes read when `signal` aborts; rejects if the stream ends earlier. */
async function follow(agent: AgentProcess, id: string, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  try {
    for await (const chunk of await openLog(agent, id, 'tail=0&follow=true', signal)) {
      bytes += chunk.length;
    }
    throw new Error('the stream ended');
  } catch (error) {
    if (signal.aborted) return bytes;
    throw new Error(`a follower lost its stream: ${messageOf(error)}`, { cause: error });
  }
}

async function sample({ child }: AgentProcess, forMs: number): Promise<Figures> {
  const figures: Figures = { memory: [], descriptors: [], logFiles: [] };
  const startedMs = systemClock.monotonicMs();
  for (;;) {
    await systemClock.sleep(SAMPLE_MS);
    const atMs = systemClock.monotonicMs() - startedMs;
    figures.memory.push({ atMs, value: residentMb(child.pid) });
    const open = openFiles(child.pid);
    const logs = open.filter((name) => LOG_FILE.test(name)).length;
    figures.descriptors.push({ atMs, value: open.length - logs });
    figures.logFiles.push({ atMs, value: logs });
    if (atMs >= forMs) return figures;
  }
}

/** Targets of the process's open descriptors; a descriptor may be closed during the read. */
function openFiles(pid: number | undefined): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(`${folder}/${name}`)];
    } catch {
      return [];
    }
  });
}

function byMinute(samples: readonly Sample[]): string {
  const minutes = Object.groupBy(samples, ({ atMs }) => Math.floor(atMs / MS_PER_MINUTE));
  return Object.values(minutes)
    .map((some) => median((some ?? []).map(({ value }) => value)).toFixed(1))
    .join(' ');
}

function rowsOf({ memory, descriptors, logFiles }: Figures, leastBytes: number): Row[] {
  const settled = <T>(samples: readonly T[]) =>
    samples.slice(Math.floor(samples.length * WARM_UP_SHARE));
  const peakMb = Math.max(...memory.map(({ value }) => value));
  const open = settled(descriptors).map(({ value }) => value);
  const half = Math.ceil(open.length / 2);
  const grown = median(open.slice(half)) - median(open.slice(0, half));
  const slope = growth(settled(memory), SLOPE_PER_MS);
  const files = Math.max(...logFiles.map(({ value }) => value));
  const read = leastBytes / 1e6;
  return [
    figureAtMost('agent memory, 8 pods followed: peak', peakMb, 'MB', MEMORY_CEILING_MB),
    figureAtMost('agent memory, 8 pods followed: slope in 10 min', slope, 'MB', SLOPE_CEILING_MB),
    figureAtMost('agent descriptors except log files: growth', grown, '', DESCRIPTOR_SLACK),
    figureAtMost('log files held open: peak', files, '', PODS * LOG_FILES_PER_POD),
    finding('bytes read by the slowest follower', read, 'MB', 'more than 0 MB', read > 0),
  ];
}
