/** Memory that the agent needs for one follower that stops reading while its pod writes without end. */
import { systemClock } from '#shared/runtime/clock.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { removePods } from '../fakes/agents/launch-pod.ts';
import { residentMb } from '../measure/process-usage.ts';
import { type Row, valueAtMost } from '../measure/row.ts';
import { openLog, startLogPod } from './log-pod.ts';

const CEILING_MB = 8;
const WRITE_MS = 15_000;
const SETTLE_MS = 5_000;
const WARM_UP_CHUNKS = 200;
const SCRIPT = 'yes "a line without a reader, again and again and again"';

/**
 * Measures the agent's memory with one stalled follower. The reference is the same agent with the same pod after a
 * first reader has disconnected, so its code is already loaded.
 */
export async function logMemory(agent: AgentProcess): Promise<Row> {
  const { id } = await startLogPod(agent, SCRIPT);
  const leave = new AbortController();
  try {
    await warmUp(agent, id);
    await systemClock.sleep(SETTLE_MS);
    const beforeMb = residentMb(agent.child.pid);
    const stalled = await openLog(agent, id, 'tail=0&follow=true', leave.signal);
    await stalled.next();
    await systemClock.sleep(WRITE_MS);
    const ours = residentMb(agent.child.pid) - beforeMb;
    return valueAtMost(
      'memory for a stalled log client',
      'MB',
      'agent before',
      { ours, reference: beforeMb },
      CEILING_MB,
    );
  } finally {
    leave.abort();
    await removePods(agent, [id]);
  }
}

async function warmUp(agent: AgentProcess, id: string): Promise<void> {
  const leave = new AbortController();
  const body = await openLog(agent, id, 'tail=0&follow=true', leave.signal);
  let chunks = 0;
  for await (const _chunk of body) {
    chunks += 1;
    if (chunks === WARM_UP_CHUNKS) break;
  }
  leave.abort();
}
