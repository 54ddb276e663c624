/** `npm run bench`: measures every row and its reference in the same run. */

import { withAgent } from '../measure/measured-agent.ts';
import type { Row } from '../measure/row.ts';
import { measure, type Part } from '../measure/runner.ts';
import { agentIdleMemory } from './agent-memory.bench.ts';
import { backups, smallFiles } from './backup.bench.ts';
import { busyNodes } from './busy.bench.ts';
import { centralRequests } from './central-requests.bench.ts';
import { consoleLogs } from './console-logs.bench.ts';
import { consoleMarket } from './console-market.bench.ts';
import { createToRunning } from './create-to-running.bench.ts';
import { executorList } from './executor-list.bench.ts';
import { fleetCycle } from './fleet-cycle.bench.ts';
import { ledgerCosts } from './ledger.bench.ts';
import { logFlood } from './log-flood.bench.ts';
import { logLatency } from './log-latency.bench.ts';
import { logMemory } from './log-memory.bench.ts';
import { logRead } from './log-read.bench.ts';
import { manyPods } from './many-pods.bench.ts';
import { marketSizes } from './market.bench.ts';
import { metering } from './metering.bench.ts';
import { metricHistory } from './metric-history.bench.ts';
import { metricsCost } from './metrics.bench.ts';
import { proofOfWork } from './proof-of-work.bench.ts';
import { signing } from './signing.bench.ts';
import { sshCopy } from './ssh-copy.bench.ts';
import { validatorCosts } from './validator.bench.ts';

const POD_PORTS = '28000-28099';

/** Benchmarks that share one agent. Idle memory is first: an agent that has just served load is not idle. */
const ON_AGENT = [agentIdleMemory, logMemory, logLatency, logRead, createToRunning, sshCopy];

const agent: Part<object> = {
  about: 'one agent on the real engine: idle memory, logs, launch of a pod, copies over SSH',
  run: (_, note) =>
    withAgent(POD_PORTS, async (process) => {
      for (const row of ON_AGENT) note(await row(process));
    }),
};

const flood: Part<object> = {
  about: "the agent's answers about a pod while its neighbour floods its log",
  run: (_, note) =>
    withAgent(POD_PORTS, async (process) => {
      for (const row of await logFlood(process)) note(row);
    }),
};

function rows(about: string, run: () => Promise<Row[]>): Part<object> {
  return {
    about,
    async run(_, note) {
      for (const row of await run()) note(row);
    },
  };
}

await measure(
  {
    command: 'bench',
    about:
      'Measures speed and memory, compared with references, prints a table and writes var/bench.json. Takes about fifteen minutes.',
    resultFile: 'var/bench.json',
    flags: {},
    optionsOf: () => ({}),
    parts: {
      agent,
      flood,
      pods: rows('a hundred pods on one agent', manyPods),
      list: rows('pages and filters of the node list', executorList),
      market: rows('requests about markets of 1,000 and of 100,000 nodes', marketSizes),
      requests: rows('requests and rentals of the central API', centralRequests),
      proof: rows('verification of a proof of work', proofOfWork),
      signing: rows('signatures of the validator', signing),
      metrics: rows('scrapes and GPU readings of the agent', metricsCost),
      history: rows('the history of metrics of 10,000 pods', metricHistory),
      metering: rows('a metering tick over 20,000 pods', metering),
      backups: rows('backup and restore of 1 GB', backups),
      files: rows('backup of 100,000 small files', smallFiles),
      cycle: rows('checks of 10,000 executors in one process on one core', fleetCycle),
      validator: rows(
        'signature checks, weights, memory and epochs of the validator',
        validatorCosts,
      ),
      ledger: rows('balances and postings of the money ledger', ledgerCosts),
      busy: rows('polls of 10,000 and 50,000 nodes with pods, and a rental among them', busyNodes),
      'console-logs': rows('the console while a pod writes 10,000 lines a second', consoleLogs),
      'console-market': rows(
        'the market page of the console with 100 and with 100,000 nodes',
        consoleMarket,
      ),
    },
  },
  process.argv.slice(2),
);
