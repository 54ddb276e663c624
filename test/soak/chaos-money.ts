/**
 * Checks the money of a run from outside: the charges of each pod against the time in which its container was
 * observed, and the balance of each renter against the payments and transfers that this run has made.
 */
import { usdToMicro } from '#shared/api/money.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { checkMoney, type Repeated } from '../../validator/simulate/invariants/money-checks.ts';
import { openHolds } from '../fakes/scenes/wallet.ts';
import type { FaultLog } from './chaos-faults.ts';
import { ledgerCommand } from './chaos-ledger.ts';
import type { Observer, Sighting } from './chaos-observer.ts';
import type { ChaosPod, ChaosRecords } from './chaos-operations.ts';
import type { ChaosWorld } from './chaos-world.ts';

const HOUR_MS = 3_600_000;
/** Minimum time, in milliseconds, for which a pod that ran is charged. */
const MINIMUM_CHARGE_MS = 60_000;
/**
 * Accepted difference. The container ran between two observations, whose times are known. The difference therefore
 * contains only the duration of an observation, and the rounding of the times in a statement.
 */
const TOLERANCE_MS = 1_500;
/**
 * Times after and before a fault, in milliseconds, in which a pod need not be charged: a pod is not charged while its
 * node does not answer, nor after a start until an SSH login works.
 */
const QUIET_AFTER_MS = 90_000;
const QUIET_BEFORE_MS = 5_000;
/** Maximum time between two observations; with more, the time between them is unknown. */
const OBSERVED_EVERY_MS = 4_000;

export type MoneyFindings = {
  /** Violations of the charges, of the balances, and of the ledger's own rules. */
  charges: string[];
  balances: string[];
  ledger: string[];
  billedMs: number;
  seenMs: number;
  spentUusd: number;
};

type Line = { from: string; to: string; state: string; gpu_count: number; price_per_gpu: number };
type Statement = { total: number; refunded: number; lines: (Line & { amount: number })[] };

export async function checkAllMoney(
  world: ChaosWorld,
  db: Database,
  records: ChaosRecords,
  observed: { observer: Observer; faults: FaultLog },
): Promise<MoneyFindings> {
  const found: MoneyFindings = {
    charges: [],
    balances: [],
    ledger: [],
    billedMs: 0,
    seenMs: 0,
    spentUusd: 0,
  };
  const spent = new Map(world.accounts.map(({ id }) => [id, 0]));
  for (const pod of records.pods) {
    const answer = await pod.account.call('GET', `/pods/${pod.id}/statement`);
    const statement = answer.body as unknown as Statement;
    const uusd = usdToMicro(statement.total);
    spent.set(pod.account.id, (spent.get(pod.account.id) ?? 0) + uusd);
    found.spentUusd += uusd;
    checkStatement(found, pod, statement);
    checkTime(found, pod, statement, observed);
  }
  await checkBalances(found, world, db, { records, spent });
  await checkLedger(found, world, db, observed.faults);
  return found;
}

/** Recomputes the amounts of a statement from its times and prices. */
function checkStatement({ charges }: MoneyFindings, { id }: ChaosPod, statement: Statement): void {
  let listed = 0;
  let cost = 0;
  let least = 0;
  for (const line of statement.lines) {
    listed += usdToMicro(line.amount);
    if (!isCharged(line)) continue;
    const perMs = (line.gpu_count * usdToMicro(line.price_per_gpu)) / HOUR_MS;
    cost += msOf(line) * perMs;
    least = Math.max(least, MINIMUM_CHARGE_MS * perMs);
  }
  // `total` does not include refunds and amounts that the platform has paid; it is never below 0.
  const total = usdToMicro(statement.total);
  const wanted = Math.max(0, Math.max(cost, least) - usdToMicro(statement.refunded));
  if (Math.abs(total - wanted) > 1 || Math.abs(total - Math.max(0, listed)) > 1) {
    charges.push(`${id}: charged ${total}, its times cost ${wanted}, its lines sum to ${listed}`);
  }
}

/** Compares the charged time with the time in which the engine ran the pod's container. */
function checkTime(
  found: MoneyFindings,
  { id, removedMs }: ChaosPod,
  { lines }: Statement,
  { observer, faults }: { observer: Observer; faults: FaultLog },
): void {
  const billedMs = lines.filter(isCharged).reduce((sum, line) => sum + msOf(line), 0);
  const sighting = observer.of(id);
  const longestMs = sighting === undefined ? 0 : spanOf(sighting);
  const shortestMs = sighting === undefined ? 0 : quietTimeOf(sighting, faults, removedMs);
  found.billedMs += billedMs;
  found.seenMs += longestMs;
  if (billedMs > longestMs + TOLERANCE_MS) {
    found.charges.push(`${id}: charged ${billedMs} ms, but existed for ${longestMs} ms at most`);
  }
  if (billedMs < shortestMs - TOLERANCE_MS) {
    found.charges.push(`${id}: charged ${billedMs} ms, but ran undisturbed for ${shortestMs} ms`);
  }
}

function spanOf({ notBeforeMs, notAfterMs, runningAtMs }: Sighting): number {
  return (notAfterMs ?? runningAtMs.at(-1) ?? notBeforeMs) - notBeforeMs;
}

/** Time between two observations of the running container, without a fault shortly before or after. */
function quietTimeOf(
  { runningAtMs }: Sighting,
  { spans }: FaultLog,
  removedMs: number | null,
): number {
  let sum = 0;
  for (const [index, toMs] of runningAtMs.entries()) {
    const fromMs = runningAtMs[index - 1];
    const startedMs = runningAtMs[0] ?? 0;
    if (fromMs === undefined || toMs - fromMs > OBSERVED_EVERY_MS) continue;
    if (fromMs - startedMs < QUIET_AFTER_MS || toMs > (removedMs ?? toMs)) continue;
    const isDisturbed = spans.some(
      (span) => span.fromMs < toMs + QUIET_BEFORE_MS && span.toMs > fromMs - QUIET_AFTER_MS,
    );
    if (!isDisturbed) sum += toMs - fromMs;
  }
  return sum;
}

async function checkBalances(
  { balances }: MoneyFindings,
  { accounts }: ChaosWorld,
  db: Database,
  { records, spent }: { records: ChaosRecords; spent: ReadonlyMap<string, number> },
): Promise<void> {
  for (const account of accounts) {
    const sumOf = (amounts: readonly { uusd: number }[]) =>
      amounts.reduce((sum, { uusd }) => sum + uusd, 0);
    const paid = sumOf(records.payments.filter((payment) => payment.account === account));
    const received = sumOf(records.transfers.filter(({ to }) => to === account));
    const sent = sumOf(records.transfers.filter(({ from }) => from === account));
    const charged = await chargedBySimulation(db, account.id);
    const wanted = paid + charged + received - sent - (spent.get(account.id) ?? 0);
    const { body } = await account.call('GET', '/users/me');
    const balance = usdToMicro(Number(body['balance']));
    if (balance === wanted) continue;
    balances.push(
      `${account.email} has ${balance}, but its payments leave ${wanted} micro-dollars`,
    );
  }
}

/** Sum of the charges for an account that the simulated payment processor itself has recorded. */
async function chargedBySimulation(db: Database, accountId: string): Promise<number> {
  const rows = await db
    .selectFrom('simulated_charges')
    .innerJoin('topups', 'topups.id', 'simulated_charges.charge_key')
    .select('simulated_charges.amount_uusd')
    .where('topups.account_id', '=', accountId)
    .execute();
  return rows.reduce((sum, row) => sum + row.amount_uusd, 0);
}

/** Runs the product's own audit, its command, and the rules of the other money runs. */
async function checkLedger(
  { ledger }: MoneyFindings,
  world: ChaosWorld,
  db: Database,
  { clocks }: FaultLog,
): Promise<void> {
  const { isOk, output } = await ledgerCommand(world.database, ['verify']);
  if (!isOk) ledger.push(`ledger verify: ${output}`);
  // A clock that is set back repeats a span of time; a clock that was set ahead repeats a span when it is set right.
  const repeated: Repeated[] = clocks
    .filter(({ service }) => service === 'central')
    .map(({ offsetMs, fromMs, toMs }) => ({
      fromMs: Math.min(fromMs, fromMs + offsetMs),
      toMs: Math.max(toMs, toMs + offsetMs),
    }));
  await checkMoney(db, repeated).catch((error: Error) => ledger.push(error.message));
  const holds = await openHolds(db);
  if (holds.size > 0) ledger.push(`${holds.size} holds are open although no pod is left`);
}

function isCharged({ state }: Line): boolean {
  return state === 'running' || state === 'rebooting';
}

/** Times of a statement are UTC without a zone. */
function msOf({ from, to }: Line): number {
  return Math.max(0, (parseIsoTime(to) ?? 0) - (parseIsoTime(from) ?? 0));
}
