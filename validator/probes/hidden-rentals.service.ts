/**
 * Rents nodes as an ordinary customer and compares what the pod has with the offer: decides when a node is due, waits
 * for its first free moment, stays within the budget, and ends rentals that an earlier process left.
 */
import { CallRefused } from '#shared/http/json-call.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { derivedRandom, type Random } from '#shared/runtime/random.ts';
import type { SshKeyPair } from '#shared/signing/openssh-key.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { HiddenRentalFacts } from '../checks/measured.ts';
import type { EvidenceStore, HiddenRentalRow } from '../store/tables.ts';
import {
  begin,
  deleteOld,
  end,
  insertWaiting,
  lastDue,
  lastResult,
  listOpen,
  postpone,
  recordPod,
  recordResult,
  resultsOfOthers,
  spentSince,
} from './hidden-rental.store.ts';
import { createLoginKey } from './login-key.ts';
import type { RenterLogin } from './openssh-login.ts';
import type { OrdinaryUse } from './ordinary-use.ts';
import type { ProbeAccount, ProbeAccounts } from './probe-accounts.ts';
import { NotMeasured, rentAndMeasure } from './rent-and-measure.ts';
import { type DrawnRental, drawRental, dueIn } from './rental.plan.ts';
import type { RenterClient, RentRequest } from './renter-client.ts';

export type HiddenRentalsOptions = {
  store: EvidenceStore;
  clock: Clock;
  random: Random;
  log: Log;
  policy: Pick<CheckPolicy, 'hidden_rentals_per_day' | 'hidden_rental_hours'>;
  use: OrdinaryUse;
  /** Accounts that rent; null disables hidden rentals. Throws ConfigError for a wrong file. */
  readAccounts(): ProbeAccounts | null;
  clientOf(account: ProbeAccount): RenterClient;
  logIn: RenterLogin;
  /** Ids of the executors that the validator inspects. */
  listed(): readonly string[];
  usdPerDay: number;
  /** Returns false if another process of this validator makes the rentals. */
  holdsLease(): Promise<boolean>;
};

export type HiddenRentals = ReturnType<typeof createHiddenRentals>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const KEPT_MS = 90 * DAY_MS;
/** Longest wait for a free node. */
const WAITING_MS = 7 * DAY_MS;
/** Pause after a refused request. */
const AGAIN_MS = 600_000;
/** From this status on, the central API may have rented the node. */
const SERVER_ERROR = 500;
/** Statuses that depend on the key, the time or the number of requests. */
const MAY_BE_REPEATED = [401, 408, 429];
const UUSD = 1_000_000;
const MAX_PARALLEL = 8;
/** Time after which a rental is given up that cannot be ended. */
const LOST_MS = DAY_MS;

export function createHiddenRentals(options: HiddenRentalsOptions) {
  const { store, clock, log, policy, use } = options;
  const running = new Map<string, Promise<void>>();
  const stopping = new AbortController();

  /** Inserts a waiting rental for each listed executor whose time in the present interval has come. */
  async function schedule({ secret }: ProbeAccounts): Promise<void> {
    const perDay = policy.hidden_rentals_per_day;
    if (perDay === 0) return;
    const last = await lastDue(store);
    const sourceFor = (label: string) => derivedRandom(secret, label);
    for (const executorId of options.listed()) {
      const { sinceMs, dueMs } = dueIn(sourceFor, { executorId, perDay, nowMs: clock.now() });
      if (dueMs > clock.now() || (last.get(executorId) ?? 0) >= sinceMs) continue;
      await insertWaiting(store, { id: options.random.uuid(), executorId, dueMs });
    }
  }

  async function runDue(accounts: ProbeAccounts, waiting: readonly HiddenRentalRow[]) {
    if (waiting.length === 0) return;
    const reader = options.clientOf(accounts.accounts[0]);
    const free = new Map((await reader.freeNodes()).map((node) => [node.id, node]));
    const templates = await reader.templates();
    let unaffordable = 0;
    for (const row of waiting) {
      const node = free.get(row.executor_id);
      if (node === undefined) continue;
      if (running.size >= MAX_PARALLEL || stopping.signal.aborted) break;
      const drawn = drawRental(accounts, { id: `${row.id} ${row.due_ms}`, node, templates, use });
      if (drawn === null) continue;
      const spent = await spentSince(store, clock.now() - DAY_MS);
      if (spent + drawn.costUusd > options.usdPerDay * UUSD) unaffordable += 1;
      else await startRental(row, drawn);
    }
    if (unaffordable > 0)
      log.info({ unaffordable }, 'hidden rentals wait for the budget of the day');
  }

  /** Records the rental, and carries it out in the background. */
  async function startRental(row: HiddenRentalRow, drawn: DrawnRental): Promise<void> {
    const { account, plan, costUusd: cost_uusd } = drawn;
    const key = await createLoginKey(options.random, plan.key);
    const request: RentRequest = { ...plan.body, user_public_key: key.publicKey };
    const idempotencyKey = options.random.uuid();
    await begin(store, row.id, {
      account: account.name,
      request_json: JSON.stringify(request),
      idempotency_key: idempotencyKey,
      started_ms: clock.now(),
      cost_uusd,
    });
    const client = options.clientOf(account);
    const done = carryOut({ ...drawn, row, client, request, idempotencyKey, key })
      .catch((error: unknown) =>
        log.warn({ executor: row.executor_id, error: messageOf(error) }, 'hidden rental failed'),
      )
      .finally(() => running.delete(row.id));
    running.set(row.id, done);
  }

  type Rental = DrawnRental & {
    row: HiddenRentalRow;
    client: RenterClient;
    request: RentRequest;
    idempotencyKey: string;
    key: SshKeyPair;
  };

  /** After an error other than a refused request, the row stays open, and a later pass ends the rental. */
  async function carryOut({ row, client, plan, ...rental }: Rental): Promise<void> {
    const { id, executor_id: executorId } = row;
    const { signal } = stopping;
    let podId: string;
    try {
      podId = (await client.rent(executorId, rental.request, rental.idempotencyKey)).id;
    } catch (error) {
      if (isRefused(error)) await postpone(store, id, clock.now() + AGAIN_MS);
      throw error;
    }
    await recordPod(store, id, podId);
    try {
      const ports = { clock, random: rental.measurements, client, logIn: options.logIn, signal };
      const measured = await rentAndMeasure(ports, { podId, plan, ...rental });
      const facts = await withReachableFleet(executorId, measured);
      await recordResult(store, id, JSON.stringify(facts));
      log.info(
        { executor: executorId, mismatches: facts.mismatches.length },
        'hidden rental measured',
      );
      await clock.sleep(plan.lingerMs, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof NotMeasured)) throw error;
      log.info({ executor: executorId, reason: error.message }, 'hidden rental not measured');
    }
    await client.end(podId);
    await end(store, id, clock.now());
  }

  /**
   * Counts a refused login only if a login to another node has succeeded lately, because the validator's own network
   * may be the cause.
   */
  async function withReachableFleet(
    executorId: string,
    facts: HiddenRentalFacts,
  ): Promise<HiddenRentalFacts> {
    const { mismatches, seen_once: once } = facts;
    const others = await resultsOfOthers(store, executorId, clock.now() - DAY_MS);
    const isReached = others.some((json) => {
      const other = HiddenRentalFacts.parse(JSON.parse(json));
      return ![...other.mismatches.map(({ fact }) => fact), ...other.seen_once].includes('login');
    });
    if (isReached || !mismatches.some(({ fact }) => fact === 'login')) return facts;
    const counting = mismatches.filter(({ fact }) => fact !== 'login');
    return { ...facts, mismatches: counting, seen_once: [...once, 'login'] };
  }

  /** Ends a rental that an earlier process, or a failed request, left. */
  async function endLeft(row: HiddenRentalRow, { accounts }: ProbeAccounts): Promise<void> {
    const account = accounts.find(({ name }) => name === row.account);
    try {
      if (account === undefined) throw new Error('its account is no longer in the file');
      const client = options.clientOf(account);
      const podId = row.pod_id ?? (await podOf(row, client));
      if (podId !== null) await client.end(podId);
    } catch (error) {
      log.warn({ account: row.account, error: messageOf(error) }, 'hidden rental failed to end');
      if (clock.now() - row.due_ms < LOST_MS) return;
    }
    await end(store, row.id, clock.now());
  }

  /** Repeats the request, which returns the pod of the first one. Null if the central API refuses it. */
  async function podOf(row: HiddenRentalRow, client: RenterClient): Promise<string | null> {
    const request = JSON.parse(row.request_json ?? 'null') as RentRequest;
    try {
      return (await client.rent(row.executor_id, request, row.idempotency_key ?? '')).id;
    } catch (error) {
      if (isRefused(error)) return null;
      throw error;
    }
  }

  return {
    /** Starts what is due. Rentals continue in the background after this resolves. */
    async runOnce(): Promise<void> {
      const accounts = options.readAccounts();
      if (accounts === null || !(await options.holdsLease())) return;
      await deleteOld(store, {
        endedBeforeMs: clock.now() - KEPT_MS,
        waitingSinceMs: clock.now() - WAITING_MS,
      });
      await schedule(accounts);
      const open = (await listOpen(store)).filter(({ id }) => !running.has(id));
      for (const row of open.filter(({ started_ms: startedMs }) => startedMs !== null)) {
        await endLeft(row, accounts);
      }
      const isWaiting = (row: HiddenRentalRow) =>
        row.started_ms === null && row.due_ms <= clock.now();
      await runDue(accounts, open.filter(isWaiting));
    },

    /**
     * Rents the node in its first free moment, within the budget of the day, and at most once an hour. Returns false if
     * a rental of the node is already open. The result is part of the inspections after its end.
     */
    async rentInFirstFreeMoment(executorId: string): Promise<boolean> {
      const lastMs = (await lastDue(store)).get(executorId) ?? 0;
      const dueMs = Math.max(clock.now(), lastMs + HOUR_MS);
      return insertWaiting(store, { id: options.random.uuid(), executorId, dueMs });
    },

    /** Describes for operators whether hidden rentals are made. Throws ConfigError for a wrong file. */
    state(): string {
      const accounts = options.readAccounts();
      if (accounts === null) return 'off: no accounts to rent with';
      return `${policy.hidden_rentals_per_day} a day for each node, ${accounts.accounts.length} accounts`;
    },

    /** Result of the last rental that could be measured, while the policy lets it count; null if there is none. */
    async facts(executorId: string): Promise<HiddenRentalFacts | null> {
      const sinceMs = clock.now() - policy.hidden_rental_hours * HOUR_MS;
      return factsIn(await lastResult(store, executorId, { endedMs: sinceMs }));
    },

    /** Returns false if the policy or the lack of accounts disables regular rentals. Throws ConfigError for a wrong file. */
    isOn: () => policy.hidden_rentals_per_day > 0 && options.readAccounts() !== null,

    /** Result of the newest rental that began at or after `sinceMs` and has ended; null if there is none. */
    resultSince: async (executorId: string, sinceMs: number): Promise<HiddenRentalFacts | null> =>
      factsIn(await lastResult(store, executorId, { startedMs: sinceMs })),

    /** Resolves when no rental runs in this process. */
    async settled(): Promise<void> {
      while (running.size > 0) await Promise.all(running.values());
    },

    /** Aborts the rentals of this process; the next process ends them. */
    async close(): Promise<void> {
      stopping.abort();
      await Promise.all(running.values());
    },
  };
}

const factsIn = (resultJson: string | null): HiddenRentalFacts | null =>
  resultJson === null ? null : HiddenRentalFacts.parse(JSON.parse(resultJson));

/** True if nothing was rented, and a repeated request would not rent either. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof CallRefused)) return false;
  const { status, problem } = error;
  const isFinal = status < SERVER_ERROR && !MAY_BE_REPEATED.includes(status);
  return isFinal && problem?.code !== 'idempotency_in_progress';
}
