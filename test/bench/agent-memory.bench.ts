/** Resident memory of an idle agent, compared with an idle Node process. */
import { spawn } from 'node:child_process';
import { systemClock } from '#shared/runtime/clock.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { residentMb } from '../measure/process-usage.ts';
import { type Row, valueAtMost } from '../measure/row.ts';

const CEILING_MB = 110;
/** Wait before the measurement, for several reconciles and for the collection of garbage from the start. */
const SETTLE_MS = 30_000;

export async function agentIdleMemory({ child, client }: AgentProcess): Promise<Row> {
  await client.inventory();
  const idle = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  try {
    await systemClock.sleep(SETTLE_MS);
    return valueAtMost(
      'agent memory, idle',
      'MB',
      'node that does nothing',
      { ours: residentMb(child.pid), reference: residentMb(idle.pid) },
      CEILING_MB,
    );
  } finally {
    idle.kill();
  }
}
