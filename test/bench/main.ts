/** `npm run bench`: every row side by side with its reference; prints a table and writes var/bench.json. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createAgentHome } from '../fakes/agent-process.ts';
import { agentIdleMemory } from './agent-memory.bench.ts';
import { centralRequests } from './central-requests.bench.ts';
import { createToRunning } from './create-to-running.bench.ts';
import { executorList } from './executor-list.bench.ts';
import { logLatency } from './log-latency.bench.ts';
import { logMemory } from './log-memory.bench.ts';
import { logRead } from './log-read.bench.ts';
import type { BenchRow } from './row.ts';
import { sshCopy } from './ssh-copy.bench.ts';

const RESULT_FILE = 'var/bench.json';
const POD_PORTS = '28000-28099';

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function show(row: BenchRow): string {
  const cells = [
    row.name,
    `${row.ours.toFixed(1)} ${row.unit}`,
    `${row.reference.toFixed(1)} ${row.unit} (${row.against})`,
    `${row.ratio.toFixed(2)}x`,
    row.bar,
    row.holds ? 'holds' : 'MISSED',
  ];
  return cells.join(' | ');
}

const HELP = `npm run bench: measures speed and memory side by side with references, prints a table and writes
${RESULT_FILE}. Takes about two minutes; a missed bar does not fail the run.
`;

if (process.argv.length > 2) {
  process.stdout.write(HELP);
  process.exit(process.argv[2] === '--help' ? 0 : 2);
}

const rows: BenchRow[] = [];
const home = createAgentHome({ AGENT_PORT_RANGE: POD_PORTS });
// The folder must not outlive a run that is broken off; the agent ends with this process by itself.
process.once('exit', () => home.remove());
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const agent = await home.start();
try {
  print('name | ours | reference | ratio | bar | holds');
  // Memory first: an agent that has just been driven hard is not idle.
  for (const measure of [
    agentIdleMemory,
    logMemory,
    logLatency,
    logRead,
    createToRunning,
    sshCopy,
  ]) {
    const row = await measure(agent);
    rows.push(row);
    print(show(row));
  }
} finally {
  await agent.stop();
}
for (const row of [...(await executorList()), ...(await centralRequests())]) {
  rows.push(row);
  print(show(row));
}
mkdirSync('var', { recursive: true });
writeFileSync(RESULT_FILE, `${JSON.stringify(rows, null, 2)}\n`);
print(`written to ${RESULT_FILE}; a missed bar does not fail the run`);
