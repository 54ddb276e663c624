/** One run of chaos: operations and faults of a plan, then a time of rest, then the checks. */
import { once } from 'node:events';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { figureAtMost, finding, type Row } from '../measure/row.ts';
import { compareEmpty, compareEvents, compareHosts, restoreAll, settle } from './chaos-checks.ts';
import { followEvents } from './chaos-events.ts';
import { type FaultLog, injectFaults } from './chaos-faults.ts';
import { checkAllMoney, type MoneyFindings } from './chaos-money.ts';
import { observeContainers } from './chaos-observer.ts';
import { type ChaosRecords, createRenters } from './chaos-operations.ts';
import { planChaos } from './chaos-plan.ts';
import { type ChaosWorld, createChaosWorld } from './chaos-world.ts';

const MS_PER_MINUTE = 60_000;
const FIRST_PAYMENT_USD = 50;
const SHOWN_LINES = 40;

export type ChaosOptions = {
  seed: number;
  minutes: number;
  /** Kinds of faults to leave out. */
  without: readonly string[];
  /** Folder for the output of the services. */
  logs: string;
  print(line: string): void;
};

/**
 * Needs root and a network namespace that it may change. A run that `signal` aborts rejects; both remove everything.
 */
export async function runChaos(options: ChaosOptions, signal: AbortSignal): Promise<Row[]> {
  const { seed, minutes, without, print } = options;
  const lines: string[] = [];
  const startMs = systemClock.monotonicMs();
  const note = (line: string) => {
    const atS = ((systemClock.monotonicMs() - startMs) / 1_000).toFixed(1);
    lines.push(`${atS} s ${line}`);
  };
  const plan = planChaos(createSeededRandom(seed), minutes * MS_PER_MINUTE, without);
  print(`chaos, seed ${seed}: output of the services in ${options.logs}`);
  const world = await createChaosWorld(options.logs, signal);
  try {
    signal.throwIfAborted();
    const interrupted = once(signal, 'abort').then(() => signal.throwIfAborted() as never);
    const result = await Promise.race([
      play(world, plan, { minutes, note, print, signal }),
      interrupted,
    ]);
    const rows = rowsOf(result, seed);
    if (rows.every(({ holds }) => holds)) return rows;
    print(`chaos, seed ${seed}: the last operations and faults`);
    for (const line of lines.slice(-SHOWN_LINES)) print(`  ${line}`);
    for (const [what, losses] of Object.entries(result.losses)) {
      for (const loss of losses) print(`  LOSS ${what}: ${loss}`);
    }
    return rows;
  } catch (error) {
    print(`chaos, seed ${seed}, failed after these operations and faults:`);
    for (const line of lines.slice(-SHOWN_LINES)) print(`  ${line}`);
    throw error;
  } finally {
    await world.close();
  }
}

type Play = {
  minutes: number;
  note(line: string): void;
  print(line: string): void;
  signal: AbortSignal;
};
type Result = {
  records: ChaosRecords;
  faults: FaultLog;
  losses: Record<string, string[]>;
  money: MoneyFindings;
  events: number;
};

async function play(
  world: ChaosWorld,
  plan: ReturnType<typeof planChaos>,
  { minutes, note, print, signal }: Play,
): Promise<Result> {
  const db = await openCentralDatabase(world.database);
  const observer = observeContainers(world);
  const followers = world.accounts.map((account) => followEvents(world.origin, account));
  try {
    const renters = createRenters(world, note);
    for (const account of world.accounts) await renters.topUp(account, FIRST_PAYMENT_USD);
    const untilMs = systemClock.monotonicMs() + minutes * MS_PER_MINUTE;
    print('chaos: everything runs; operations and faults begin');
    const [faults] = await Promise.all([
      injectFaults(world, plan.faults, { untilMs, signal, note }),
      renters.run(plan.operations, signal),
    ]);
    print(`chaos: waits for rest; faults ${JSON.stringify(faults.counts)}`);
    const unsettled = await settle(db);
    const hosts = await compareHosts(world, db);
    print('chaos: restores every backup');
    const backups = await restoreAll(world, renters, db);
    for (const pod of renters.livePods()) await renters.remove(pod);
    const leftBehind = await compareEmpty(world, db);
    const { records } = renters;
    const money = await checkAllMoney(world, db, records, { observer, faults });
    const events = await compareEvents(world, db, followers);
    const { charges, balances, ledger } = money;
    const losses = {
      ...hosts,
      operations: [...records.losses, ...unsettled.map((what) => `does not come to rest: ${what}`)],
      backups,
      'left behind': leftBehind,
      charges,
      balances,
      ledger,
      events,
    };
    const count = followers.reduce((sum, { received }) => sum + received.length, 0);
    return { records, faults, losses, money, events: count };
  } finally {
    await observer.stop();
    for (const follower of followers) await follower.stop();
    await db.destroy();
  }
}

const NAMES: Record<string, string> = {
  containers: 'containers that differ from the pods',
  broken: 'pods BROKEN whose container runs',
  leases: 'leases that differ from the pods',
  volumes: 'volumes without a pod',
  access: 'running pods without SSH',
  operations: 'operations without a right end',
  backups: 'completed backups that were lost or differ',
  'left behind': 'objects left behind after all pods were removed',
  charges: 'pods whose charges differ from their time',
  balances: 'accounts whose balance differs from their payments',
  ledger: 'violations of the ledger',
  events: 'accounts whose stream lost or repeated an event',
};

function rowsOf({ records, faults, losses, money, events }: Result, seed: number): Row[] {
  const total = (counts: Record<string, number>) =>
    Object.values(counts).reduce((sum, count) => sum + count, 0);
  const rows = [
    finding(`chaos, seed ${seed}: faults`, total(faults.counts), '', 'all survived', true),
    ...Object.entries(faults.counts).map(([kind, count]) =>
      finding(`chaos: ${kind}`, count, '', 'survived', true),
    ),
    ...Object.entries(records.counts)
      .toSorted()
      .map(([kind, count]) => finding(`chaos: ${kind}`, count, '', 'answered', true)),
    finding('chaos: events received', events, '', 'each once', true),
    finding('chaos: spent', money.spentUusd / 1_000_000, 'USD', 'to the micro-dollar', true),
    finding(
      'chaos: charged part of the time in which containers existed',
      money.seenMs === 0 ? 0 : (100 * money.billedMs) / money.seenMs,
      '%',
      'at most all',
      true,
    ),
  ];
  for (const [what, found] of Object.entries(losses)) {
    rows.push(figureAtMost(`chaos: ${NAMES[what] ?? what}`, found.length, '', 0));
  }
  return rows;
}

/** Runs in a separate process with a new network namespace (chaos.soak.ts), and sends the rows to its parent. */
async function main(text: string): Promise<void> {
  const given = JSON.parse(text) as Omit<ChaosOptions, 'print' | 'logs'>;
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const ending = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'disconnect'] as const) {
    process.on(name, () => ending.abort(new Error('the run was interrupted')));
  }
  const logs = join(import.meta.dirname, '../../var', `chaos-${given.seed}`);
  try {
    const rows = await runChaos({ ...given, logs, print }, ending.signal);
    process.send?.(rows, () => process.exit());
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
    process.exit(1);
  }
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
