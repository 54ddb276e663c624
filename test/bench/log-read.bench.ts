/**
 * A million lines: a follower reads them while they are written at full speed, then they are read again and compared
 * with `docker logs`.
 */
import { spawn } from 'node:child_process';
import { systemClock } from '#shared/runtime/clock.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { removePods } from '../fakes/agents/launch-pod.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { createSequenceCheck, openLog, startLogPod } from './log-pod.ts';

const LINES = 1_000_000;
const PAIRS = 3;
const MAX_RATIO = 0.5;
/** Writes lines of about 110 bytes: the log rotates twice, and no line is discarded. */
const SCRIPT =
  `awk 'BEGIN { for (i = 1; i <= ${LINES}; i++) printf "%07d at full speed over rotation\\n", i }';` +
  ' exec sleep 100000';

export async function logRead(agent: AgentProcess): Promise<Row> {
  const { id, container_id: container } = await startLogPod(agent, SCRIPT);
  try {
    await follow(agent, id);
    const ours: number[] = [];
    const reference: number[] = [];
    for (let pair = 0; pair < PAIRS; pair += 1) {
      ours.push(await timed(() => readAll(agent, id)));
      reference.push(await timed(() => dockerLogs(container ?? '')));
    }
    return ratioAtMost(
      'log of 1,000,000 lines',
      'ms',
      'docker logs',
      { ours: median(ours), reference: median(reference) },
      MAX_RATIO,
    );
  } finally {
    await removePods(agent, [id]);
  }
}

/** Follows the log and throws when a line is lost or duplicated. */
async function follow(agent: AgentProcess, id: string): Promise<void> {
  const leave = new AbortController();
  const check = createSequenceCheck(/"log":"(\d{7}) /g);
  for await (const chunk of await openLog(agent, id, 'since=0&follow=true', leave.signal)) {
    check.push(chunk);
    if (check.count() === LINES) break;
  }
  leave.abort();
}

async function readAll(agent: AgentProcess, id: string): Promise<void> {
  const check = createSequenceCheck(/"log":"(\d{7}) /g);
  const body = await openLog(agent, id, 'since=0', new AbortController().signal);
  for await (const chunk of body) check.push(chunk);
  if (check.count() !== LINES) throw new Error(`${check.count()} lines of ${LINES}`);
}

async function dockerLogs(container: string): Promise<void> {
  const child = spawn('docker', ['logs', container], { stdio: ['ignore', 'pipe', 'inherit'] });
  let count = 0;
  for await (const chunk of child.stdout) {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) count += 1;
  }
  if (count !== LINES) throw new Error(`docker logs returned ${count} lines of ${LINES}`);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const beganMs = systemClock.monotonicMs();
  await work();
  return systemClock.monotonicMs() - beganMs;
}
