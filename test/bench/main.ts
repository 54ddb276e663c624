/** `npm run bench`: every row side by side with its reference; prints a table and writes var/bench.json. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { createAgentHome } from '../fakes/agent-process.ts';
import { agentIdleMemory } from './agent-memory.bench.ts';
import { backups } from './backup.bench.ts';
import { centralRequests } from './central-requests.bench.ts';
import { createToRunning } from './create-to-running.bench.ts';
import { executorList } from './executor-list.bench.ts';
import { ledgerCosts } from './ledger.bench.ts';
import { logLatency } from './log-latency.bench.ts';
import { logMemory } from './log-memory.bench.ts';
import { logRead } from './log-read.bench.ts';
import { metering } from './metering.bench.ts';
import { metricsCost } from './metrics.bench.ts';
import { proofOfWork } from './proof-of-work.bench.ts';
import type { BenchRow } from './row.ts';
import { signing } from './signing.bench.ts';
import { sshCopy } from './ssh-copy.bench.ts';
import { validatorCosts } from './validator.bench.ts';

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

/** What needs no agent, by the name that `--only` takes. */
const PARTS: Record<string, () => Promise<BenchRow[]>> = {
  list: executorList,
  requests: centralRequests,
  proof: proofOfWork,
  signing,
  metrics: metricsCost,
  metering,
  backups,
  validator: validatorCosts,
  ledger: ledgerCosts,
};
const AGENT = 'agent';

const HELP = `Usage: npm run bench -- [--only ${[AGENT, ...Object.keys(PARTS)].join('|')}]

Measures speed and memory side by side with references, prints a table and writes ${RESULT_FILE}. Takes about four
minutes; a missed bar does not fail the run.
`;

function chosen(): string | null {
  try {
    const { values } = parseArgs({
      options: { only: { type: 'string' }, help: { type: 'boolean' } },
    });
    const { only = null, help = false } = values;
    if (!help && (only === null || only === AGENT || only in PARTS)) return only;
    process.stdout.write(HELP);
    process.exit(help ? 0 : 2);
  } catch {
    process.stdout.write(HELP);
    process.exit(2);
  }
}

const rows: BenchRow[] = [];

function note(row: BenchRow): void {
  rows.push(row);
  print(show(row));
}

async function onAgent(): Promise<void> {
  const home = createAgentHome({ AGENT_PORT_RANGE: POD_PORTS });
  // The folder must not outlive a run that is broken off; the agent ends with this process by itself.
  process.once('exit', () => home.remove());
  const agent = await home.start();
  try {
    // Memory first: an agent that has just been driven hard is not idle.
    for (const measure of [
      agentIdleMemory,
      logMemory,
      logLatency,
      logRead,
      createToRunning,
      sshCopy,
    ]) {
      note(await measure(agent));
    }
  } finally {
    await agent.stop();
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const only = chosen();
print('name | ours | reference | ratio | bar | holds');
if (only === null || only === AGENT) await onAgent();
for (const [name, measure] of Object.entries(PARTS)) {
  if (only === null || only === name) for (const row of await measure()) note(row);
}
mkdirSync('var', { recursive: true });
writeFileSync(RESULT_FILE, `${JSON.stringify(rows, null, 2)}\n`);
print(`written to ${RESULT_FILE}; a missed bar does not fail the run`);
