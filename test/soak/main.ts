/** `npm run soak`: long runs on the real engine; prints a table and writes var/soak.json. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { systemRandom } from '#shared/runtime/random.ts';
import { createAgentHome } from '../fakes/agent-process.ts';
import { backupKills } from './backup-kills.soak.ts';
import { backupTree } from './backup-tree.soak.ts';
import { badRequests } from './bad-requests.soak.ts';
import { ledgerPostings } from './ledger.soak.ts';
import { logFollowers } from './log-followers.soak.ts';
import { moneyMatters } from './money.soak.ts';
import { randomOperations } from './random-operations.soak.ts';
import type { SoakRow } from './row.ts';
import { agentUpdate } from './update.soak.ts';

const RESULT_FILE = 'var/soak.json';
const POD_PORTS = '28100-28199';
const DEFAULT_MINUTES = 10;
const MAX_SEED = 2 ** 31;

const HELP = `Usage: npm run soak -- [--minutes N] [--only logs|random|fuzz|backup|ledger|money|update] [--seed N]

Each part but fuzz, money and update lasts N minutes (${DEFAULT_MINUTES}):
  logs    8 pods write, 16 readers follow: the agent's memory and descriptors
  random  random operations and faults on an engine of its own (needs root), from --seed or a fresh one
  fuzz    10,000 bad requests to a central API, from the same seed: its answers and its memory
  backup  a gigabyte backed up and restored on two agents (needs root); then, for N minutes, kills of agent, restic
          and central at requests of backups and restores, from the same seed
  ledger  random postings to a money ledger, from the same seed; every rule of it checked
  money   10,000 random events around metered pods, and a month of a small market, from the same seed; every rule checked
  update  an agent under systemd (in a container; needs root) updates itself to the image that \`npm run image\` builds
Prints a table and writes ${RESULT_FILE}. A missed bar does not fail the run; what does not settle does.
`;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function options() {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string', default: String(DEFAULT_MINUTES) },
        only: { type: 'string' },
        seed: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    const minutes = Number(values.minutes);
    const seed = values.seed === undefined ? systemRandom.int(MAX_SEED) : Number(values.seed);
    const known =
      values.only === undefined ||
      ['logs', 'random', 'fuzz', 'backup', 'ledger', 'money', 'update'].includes(values.only);
    const valid = minutes > 0 && Number.isInteger(seed) && known && !values.help;
    return valid ? { minutes, seed, only: values.only } : { help: values.help };
  } catch {
    return { help: false };
  }
}

const asked = options();
if ('help' in asked) {
  process.stdout.write(HELP);
  process.exit(asked.help ? 0 : 2);
}
const { minutes, seed, only } = asked;

async function logs(): Promise<SoakRow[]> {
  const home = createAgentHome({ AGENT_PORT_RANGE: POD_PORTS });
  // The folder must not outlive a run that is broken off; the agent ends with this process by itself.
  process.once('exit', () => home.remove());
  const agent = await home.start();
  try {
    return await logFollowers(agent, minutes, print);
  } finally {
    await agent.stop();
  }
}

async function backup(): Promise<SoakRow[]> {
  return [...(await backupTree(print)), ...(await backupKills({ seed, minutes, print }))];
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const rows: SoakRow[] = [];
print('name | value | bar | holds');
for (const [name, part] of [
  ['logs', logs],
  ['random', () => randomOperations({ seed, minutes, print })],
  ['fuzz', () => badRequests({ seed, print })],
  ['backup', backup],
  ['ledger', () => ledgerPostings({ seed, minutes, print })],
  ['money', () => moneyMatters({ seed, print })],
  ['update', () => agentUpdate(print)],
] as const) {
  if (only !== undefined && only !== name) continue;
  const done = await part();
  rows.push(...done);
  for (const { name: what, value, unit, bar, holds } of done) {
    print(`${what} | ${value.toFixed(1)} ${unit} | ${bar} | ${holds ? 'holds' : 'MISSED'}`);
  }
}
mkdirSync('var', { recursive: true });
writeFileSync(RESULT_FILE, `${JSON.stringify(rows, null, 2)}\n`);
print(`written to ${RESULT_FILE}`);
