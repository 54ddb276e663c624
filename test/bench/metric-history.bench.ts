/**
 * The history of metrics of 10,000 busy pods on 1,250 nodes with 8 GPUs: the collection of five minutes of samples from
 * all of them, on SQLite. Agents answer from memory, so the time is that of the central API alone.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import {
  SAMPLED_FIGURES,
  SAMPLED_GPU_FIGURES,
  type SampleHistory,
} from '#shared/api/agent/metric-history.ts';
import { createLog } from '#shared/runtime/log.ts';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { COLLECT_INTERVAL_MS } from '../../validator/central/market/metric-history/collect.ts';
import { createCollectionJob } from '../../validator/central/market/metric-history/collection.job.ts';
import { encodeRecent } from '../../validator/central/market/metric-history/history-codec.ts';
import {
  NOTHING_RECENT,
  withSamples,
} from '../../validator/central/market/metric-history/retained.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import type { Agents } from '../../validator/central/platform/ports.ts';
import { createFakeAgents } from '../fakes/agents/fake-agents.ts';
import { createManualClock } from '../fakes/manual-clock.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { fullLoad } from '../fixtures/metric-load.ts';
import { figureAtMost, median, type Row, ratioAtMost } from '../measure/row.ts';
import { fillTable } from './fill-table.ts';
import { seedMarket } from './market-seed.ts';

const NODES = 1_250;
const GPUS = 8;
const PODS = NODES * GPUS;
const ROUNDS = 3;
const TICKS = COLLECT_INTERVAL_MS / 10_000;
const HISTORY_TICKS = 3 * 360;
const MINUTES = COLLECT_INTERVAL_MS / 60_000;
const MAX_RATIO = 10;
/**
 * Maximum number of rows written per minute: one row per pod and node in five minutes (2,250 per minute), and archives,
 * which are rewritten twice a day.
 */
const CEILING_ROWS = 2_400;
const START_MS = 1_800_000_000_000;
const EPOCH = '00000000-0000-4000-8000-0000000000ee';
const load = fullLoad(createSeededRandom(1), GPUS);
const gpuOf = (gpu: number) => `GPU-0000000${gpu}-0000-4000-8000-000000000000`;
const nodeId = (index: number) => `00000000-0000-4000-9000-${index.toString(16).padStart(12, '0')}`;
/** SQL and JavaScript for the same ids: pods of a node have consecutive numbers. */
const podId = (index: number) => `00000000-0000-4000-a000-${String(index).padStart(12, '0')}`;
const POD_ID = `'00000000-0000-4000-a000-' || printf('%012d', i)`;

/** Samples of a node with 8 pods, each with one GPU. */
function samplesOf(node: number, first: number, count: number): SampleHistory['series'] {
  const rows = Array.from({ length: count }, (_, index) => ({
    tick: first + index,
    values: load(first + index),
  }));
  const host = { pod_id: null, gpus: Array.from({ length: GPUS }, (_, gpu) => gpuOf(gpu)), rows };
  const pods = Array.from({ length: GPUS }, (_, gpu) => {
    const begin = SAMPLED_FIGURES.length + gpu * SAMPLED_GPU_FIGURES.length;
    return {
      pod_id: podId(node * GPUS + gpu),
      gpus: [gpuOf(gpu)],
      rows: rows.map(({ tick, values }) => ({
        tick,
        values: [
          ...values.slice(0, SAMPLED_FIGURES.length),
          ...values.slice(begin, begin + SAMPLED_GPU_FIGURES.length),
        ],
      })),
    };
  });
  return [host, ...pods];
}

/** Inserts nodes and pods with three hours of history. */
async function seed(side: DatabaseSync): Promise<void> {
  const node = `'00000000-0000-4000-9000-' || printf('%012x', i / ${GPUS})`;
  const account = { id: `'account'`, email_norm: `'x'`, referral_code: `'x'` };
  fillTable(side, 'accounts', account, 1);
  const pod = { id: POD_ID, account_id: `'account'`, executor_id: node, state: `'running'` };
  fillTable(side, 'pods', { ...pod, gpu_count: '1' }, PODS);
  const shift = Math.floor(START_MS / 10_000) - HISTORY_TICKS;
  const toAt = (tick: number) => tick + shift;
  const history = await Promise.all(
    samplesOf(0, 0, HISTORY_TICKS)
      .slice(0, 2)
      .map((series) => encodeRecent(withSamples(NOTHING_RECENT, { series, toAt }))),
  );
  const put = side.prepare(
    'insert into metric_history (owner_id, part, newest_day, data) select id, 0, 0, ? from executors',
  );
  put.run(history[0] ?? null);
  side
    .prepare(
      'insert into metric_history (owner_id, part, newest_day, data) select id, 0, 0, ? from pods',
    )
    .run(history[1] ?? null);
  side.exec(`insert into metric_collections (executor_id, due_at, failures, epoch, tick, shift)
    select id, 0, 0, '${EPOCH}', ${HISTORY_TICKS - 1}, ${shift} from executors`);
}

/** Writes the same bytes in as many transactions, without any work on them. */
function bare(side: DatabaseSync): number {
  side.exec('create table bare (a text primary key, b blob) strict');
  side.exec('insert into bare select owner_id, data from metric_history where part = 0');
  const rows = side.prepare('select a, b from bare').all() as { a: string; b: Uint8Array }[];
  const put = side.prepare('update bare set b = ? where a = ?');
  const beganMs = performance.now();
  for (let first = 0; first < rows.length; first += GPUS + 1) {
    side.exec('begin immediate');
    for (const row of rows.slice(first, first + GPUS + 1)) put.run(row.b, row.a);
    side.exec('commit');
  }
  return performance.now() - beganMs;
}

export async function metricHistory(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const file = join(folder, 'central.db');
  const clock = createManualClock(START_MS);
  const db = await openCentralDatabase(file);
  try {
    await seedMarket(db, NODES);
    const side = openSqlite(file);
    await seed(side);
    const reference = bare(side);
    side.exec('drop table bare');
    let newest = HISTORY_TICKS - 1;
    const indexOf = new Map(Array.from({ length: NODES }, (_, index) => [nodeId(index), index]));
    const clientOf = (executorId: string): Pick<AgentClient, 'sampleHistory'> => ({
      sampleHistory: async ({ after = -1 }) => ({
        epoch: EPOCH,
        newest: { tick: newest, age_ms: 0 },
        more: false,
        series: samplesOf(indexOf.get(executorId) ?? 0, after + 1, newest - after),
      }),
    });
    const agents: Agents = {
      ...createFakeAgents(),
      clientOf: (executorId) => clientOf(executorId) as AgentClient,
    };
    const log = createLog({ name: 'bench', level: 'silent' });
    const job = createCollectionJob({ db, clock, log, agents });
    const counted = () =>
      side.prepare('select sum(tick) as ticks from metric_collections').get()?.['ticks'];
    const took: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await clock.advance(COLLECT_INTERVAL_MS);
      newest += TICKS;
      const beganMs = performance.now();
      await job.runOnce();
      took.push(performance.now() - beganMs);
      if (counted() !== NODES * newest) throw new Error('not every node was collected');
    }
    const sizes = side
      .prepare('select count(*) as rows, sum(length(data)) as bytes from metric_history')
      .get();
    side.close();
    const rows = Number(sizes?.['rows']);
    const bytes = Number(sizes?.['bytes']);
    if (rows !== PODS + NODES) throw new Error(`${rows} rows`);
    const against = 'the same bytes in as many bare transactions';
    return [
      ratioAtMost(
        'history of 10,000 pods: one collection, every 5 minutes',
        'ms',
        against,
        { ours: median(took), reference },
        MAX_RATIO,
      ),
      figureAtMost('history: transactions per minute', NODES / MINUTES, '/min', NODES),
      figureAtMost('history: rows written per minute', rows / MINUTES, '/min', CEILING_ROWS),
      figureAtMost('history: KB written per minute', bytes / MINUTES / 1_000, 'KB/min', 30_000),
      figureAtMost('history: database', statSync(file).size / 1e6, 'MB', 500),
    ];
  } finally {
    await db.destroy();
    rmSync(folder, { recursive: true });
  }
}
