/**
 * Sends events to webhooks in the order of the account's feed. The feed is the outbox: it contains an event as soon as
 * the recorded change is committed, and each webhook stores its place in the feed. After a crash between a response and
 * its record, the event is sent again with the same id.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db, Webhook } from '../../platform/database/tables.ts';
import type { PostWebhook } from '../../platform/ports.ts';
import type { AccountEvent } from '../events/event.schemas.ts';
import { eventsAfter } from '../events/event-feed.ts';
import { type Attempt, afterAttempt, isSubscribed, type Outcome } from './webhook.state.ts';
import {
  deleteOldDeliveries,
  type Lease,
  leaseWebhook,
  listReadyWebhooks,
  releaseWebhook,
  storeAttempt,
  updateLeased,
} from './webhook.store.ts';
import type { WebhookSecrets } from './webhook-message.ts';

const INTERVAL_MS = 1_000;
/**
 * A turn delivers up to EVENTS_A_TURN events of one webhook. Limits: webhooks per query (BATCH), concurrent turns in
 * total, and concurrent turns per account.
 */
const BATCH = 200;
const CONCURRENCY = 64;
const CONCURRENCY_OF_ACCOUNT = 4;
/**
 * Maximum number of events per turn (one webhook's share of a pass), so that a long backlog does not block other
 * webhooks.
 */
const EVENTS_A_TURN = 50;
/** Time after which a turn starts no further attempt, so that a slow receiver does not block other webhooks. */
const TURN_MS = 5_000;
/**
 * Duration of the lease, longer than an attempt can take. The lease is renewed before each attempt. After a crash,
 * deliveries to the webhook wait until the lease has expired.
 */
const LEASE_MS = 60_000;
const LOG_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

export type WebhookJobDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  secrets: WebhookSecrets;
  post: PostWebhook;
  /** Shortest pause between two passes. */
  pollMs: number;
  /** Notifies the owner of a disabled webhook, in the transaction that disables it. */
  notifyDisabled(tx: Db, row: Webhook, reason: 'gone' | 'failing'): Promise<void>;
};

/** An event and its place in the feed. */
type Entry = { place: number; event: AccountEvent };

export type WebhookJob = ReturnType<typeof createWebhookJob>;

export function createWebhookJob(deps: WebhookJobDeps) {
  const { db, clock, random, log, secrets, post, notifyDisabled } = deps;
  const turns = createTurnLimit({ most: CONCURRENCY, mostOfOwner: CONCURRENCY_OF_ACCOUNT });
  let loop: Loop | null = null;
  /** True if a webhook waits because the limits allow no further turn. */
  let hasWaiting = false;

  /** Stores the result of an attempt. Returns false if the webhook's turn is over. */
  async function record(
    lease: Lease,
    row: Webhook,
    entry: Entry,
    attempt: Attempt,
  ): Promise<boolean> {
    const { event } = entry;
    const nowMs = clock.now();
    const outcome = afterAttempt(attempt, row, nowMs);
    const fields = { webhook: row.id, event: event.id, status: attempt.status };
    if (outcome.kind === 'next' && outcome.state === 'delivered') {
      log.debug(fields, 'event delivered to a webhook');
    } else {
      log.warn({ ...fields, error: attempt.error, outcome: outcome.kind }, 'webhook not delivered');
    }
    return db.transaction().execute(async (tx) => {
      const change = { ...changeOf(outcome, entry), updated_at: nowMs };
      if (!(await updateLeased(tx, lease, row.after_feed_no, change))) return false;
      await storeAttempt(tx, {
        id: random.uuid(),
        webhook_id: row.id,
        event_id: event.id,
        event_type: event.sub_event_type,
        state: outcome.kind === 'next' ? outcome.state : 'waiting',
        attempts: 1,
        status: attempt.status,
        error: attempt.error,
        duration_ms: attempt.durationMs,
        created_at: nowMs,
        updated_at: nowMs,
      });
      if (outcome.kind === 'disable') await notifyDisabled(tx, row, outcome.reason);
      return outcome.kind === 'next';
    });
  }

  /** Sends one event, or skips it if the webhook does not subscribe to it. Returns false if the turn is over. */
  async function deliver(lease: Lease, entry: Entry, signal: AbortSignal): Promise<boolean> {
    const { event, place } = entry;
    const nowMs = clock.now();
    // Reads the webhook again before each event, because the owner may have changed, disabled or deleted it.
    const row = await leaseWebhook(db, lease, { nowMs, untilMs: nowMs + LEASE_MS });
    if (row === undefined || place <= row.after_feed_no) return row !== undefined;
    if (!isSubscribed(row, event)) {
      const change = { after_feed_no: place };
      return updateLeased(db, lease, row.after_feed_no, change);
    }
    const request = secrets.request(row, event, nowMs);
    return record(lease, row, entry, await post(request, signal));
  }

  async function serve(id: string, signal: AbortSignal): Promise<void> {
    const lease = { id, token: random.uuid() };
    const nowMs = clock.now();
    const row = await leaseWebhook(db, lease, { nowMs, untilMs: nowMs + LEASE_MS });
    if (row === undefined) return;
    const startedMs = clock.monotonicMs();
    const isOver = () => signal.aborted || clock.monotonicMs() - startedMs >= TURN_MS;
    try {
      const entries = await eventsAfter(db, row.account_id, row.after_feed_no, EVENTS_A_TURN);
      for (const entry of entries) {
        if (isOver() || !(await deliver(lease, entry, signal))) return;
      }
    } finally {
      await releaseWebhook(db, lease);
    }
  }

  async function turn(id: string, signal: AbortSignal): Promise<void> {
    try {
      await serve(id, signal);
      if (hasWaiting) loop?.wake();
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, webhook: id }, 'delivery to a webhook failed');
    }
  }

  /** Starts turns of webhooks that have events to send, without waiting for them. */
  async function startTurns(signal: AbortSignal): Promise<void> {
    hasWaiting = false;
    const ready = await listReadyWebhooks(db, clock.now(), BATCH);
    for (const { id, account_id: owner } of ready) {
      if (!turns.begin({ id, owner }, () => turn(id, signal))) hasWaiting = true;
    }
  }

  return {
    /** Runs one turn for every webhook that has events to send, within the limits. */
    async runOnce(): Promise<void> {
      await startTurns(new AbortController().signal);
      await turns.ended();
    },

    sweep: (tx: Db) => deleteOldDeliveries(tx, clock.now() - LOG_KEPT_MS),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: Math.max(INTERVAL_MS, deps.pollMs),
        run: startTurns,
        onError: (error) => log.error({ err: error }, 'webhook pass failed'),
      });
    },

    async stop(): Promise<void> {
      await loop?.stop();
      await turns.ended();
    },
  };
}

function changeOf(outcome: Outcome, { place }: Entry) {
  switch (outcome.kind) {
    case 'next':
      return { ...outcome.progress, after_feed_no: place };
    case 'retry':
      return outcome.progress;
    case 'disable':
      return { ...outcome.progress, is_enabled: 0 as const, disabled_reason: outcome.reason };
  }
}

/**
 * Limits concurrent turns in total and per owner, so that slow turns of one owner do not block the others. Two turns
 * with the same id never run at the same time.
 */
export function createTurnLimit({ most, mostOfOwner }: { most: number; mostOfOwner: number }) {
  const running = new Map<string, { owner: string; ended: Promise<void> }>();
  const countOf = (owner: string) =>
    running.values().reduce((count, turn) => count + (turn.owner === owner ? 1 : 0), 0);

  return {
    isFull: () => running.size >= most,

    /** Starts `work`, which must not reject. Returns false if a limit is reached or the id is running. */
    begin({ id, owner }: { id: string; owner: string }, work: () => Promise<void>): boolean {
      if (running.has(id) || running.size >= most || countOf(owner) >= mostOfOwner) return false;
      const ended = work().finally(() => running.delete(id));
      running.set(id, { owner, ended });
      return true;
    },

    /** Resolves when all running turns have ended. */
    async ended(): Promise<void> {
      await Promise.all([...running.values()].map((turn) => turn.ended));
    },
  };
}
