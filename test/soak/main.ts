/** `npm run soak`: long runs, most of them on the real engine. */
import { systemRandom } from '#shared/runtime/random.ts';
import { withAgent } from '../measure/measured-agent.ts';
import type { Row } from '../measure/row.ts';
import { measure, type Part, print } from '../measure/runner.ts';
import { backupKills } from './backup-kills.soak.ts';
import { backupTree } from './backup-tree.soak.ts';
import { badRequests } from './bad-requests.soak.ts';
import { cardMeasurements } from './card.soak.ts';
import { chaosUnderBilling } from './chaos.soak.ts';
import { isFaultKind } from './chaos-plan.ts';
import { ledgerPostings } from './ledger.soak.ts';
import { logFollowers } from './log-followers.soak.ts';
import { fullKillMatrices, longTests } from './long-tests.soak.ts';
import { moneyMatters } from './money.soak.ts';
import { ledgerMove } from './move.soak.ts';
import { hiddenAmongOrdinary } from './probes.soak.ts';
import { killedProcesses } from './processes.soak.ts';
import { randomOperations } from './random-operations.soak.ts';
import { agentUpdate } from './update.soak.ts';

const POD_PORTS = '28100-28199';
const DEFAULT_MINUTES = 10;
const MAX_SEED = 2 ** 31;

type Options = { minutes: number; seed: number; without: string[] };

function rows(about: string, run: (options: Options) => Promise<Row[]>): Part<Options> {
  return {
    about,
    async run(options, note) {
      for (const row of await run(options)) note(row);
    },
  };
}

const logs: Part<Options> = {
  about: '8 pods write, 16 readers follow: memory and descriptors of the agent',
  run: ({ minutes }, note) =>
    withAgent(POD_PORTS, async (agent) => {
      for (const row of await logFollowers(agent, minutes, print)) note(row);
    }),
};

await measure<Options>(
  {
    command: 'soak',
    about: `logs, random, backup, ledger, processes and chaos last N minutes each (${DEFAULT_MINUTES}). A run without --seed chooses a seed and prints it. --without
leaves out faults of chaos, such as clock,postgres. Prints a table and writes var/soak.json.`,
    resultFile: 'var/soak.json',
    flags: { minutes: 'N', seed: 'N', without: 'FAULT,…' },
    optionsOf({
      minutes = String(DEFAULT_MINUTES),
      seed = String(systemRandom.int(MAX_SEED)),
      without = '',
    }) {
      const left = without.split(',').filter((kind) => kind !== '');
      const options = { minutes: Number(minutes), seed: Number(seed), without: left };
      const isValid = options.minutes > 0 && Number.isInteger(options.seed);
      return isValid && left.every(isFaultKind) ? options : null;
    },
    parts: {
      logs,
      random: rows('random operations and faults on a separate engine (needs root)', (options) =>
        randomOperations({ ...options, print }),
      ),
      fuzz: rows('10,000 bad requests to a central API: its answers and its memory', ({ seed }) =>
        badRequests({ seed, print }),
      ),
      backup: rows(
        'a gigabyte backed up and restored on two agents (needs root), then kills of agent, restic and central',
        async (options) => [
          ...(await backupTree(print)),
          ...(await backupKills({ ...options, print })),
        ],
      ),
      tests: rows(
        'the tests that `npm test` leaves out because they last minutes (needs root)',
        async () => [await longTests()],
      ),
      kills: rows(
        'kill -9 of agent and engine before and after every change of every operation, about an hour (needs root)',
        () => fullKillMatrices(),
      ),
      ledger: rows('random postings to a money ledger, every rule checked', (options) =>
        ledgerPostings({ ...options, print }),
      ),
      money: rows(
        '10,000 random events around metered pods, and a month of a small market',
        ({ seed }) => moneyMatters({ seed, print }),
      ),
      move: rows(
        'a database with a million transfers is moved to PostgreSQL, with ten kills and beside a bare COPY',
        () => ledgerMove(print),
      ),
      chaos: rows(
        'kills and wrong clocks of every part of a rented, billed marketplace, then everything must agree (needs root)',
        chaosUnderBilling,
      ),
      processes: rows(
        'three central APIs on PostgreSQL behind a balancer, one killed each minute under load',
        ({ minutes }) => killedProcesses({ minutes, print }),
      ),
      gpu: rows(
        'reader and proof of work on an NVIDIA card of this machine, within ten minutes (needs CUDA’s compiler or Docker)',
        () => cardMeasurements(print),
      ),
      update: rows(
        'an agent under systemd in a container (needs root) updates itself to the image of `npm run image`',
        () => agentUpdate(print),
      ),
      probes: rows(
        '400 hidden and 400 ordinary rentals as hosts see them, separated by two classifiers (needs ssh)',
        ({ seed }) => hiddenAmongOrdinary({ seed, print }),
      ),
    },
  },
  process.argv.slice(2),
);
