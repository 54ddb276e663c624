/**
 * Sends accounts' events to their webhooks, in the order of their feeds. The feed is the outbox: an event is in it
 * as soon as what it tells of is committed, and each webhook keeps its place. A crash between an answer and its note
 * sends an event twice, under the same id.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db, Webhook } from '../../platform/database/tables.ts';
import type { PostWebhook } from '../../platform/ports.ts';
import type { AccountEvent } from '../events/event.schemas.ts';
import { eventsAfter } from '../events/event-feed.ts';
import { createTurns } from './round-robin.ts';
import { type Attempt, afterAttempt, type Outcome, wantsEvent } from './webhook.state.ts';
import {
  deleteOldDeliveries,
  type Lease,
  leaseWebhook,
  listReadyWebhooks,
  noteAttempt,
  releaseWebhook,
  updateLeased,
} from './webhook.store.ts';
import type { WebhookSecrets } from './webhook-message.ts';

const INTERVAL_MS = 1_000;
/** Webhooks looked at in one pass, how many are sent to at a time, and how many of one account. */
const BATCH = 200;
const CONCURRENCY = 64;
const CONCURRENCY_OF_ACCOUNT = 4;
/** Events read, and sent, before a webhook's turn is over: a long backlog keeps nobody else waiting. */
const EVENTS_A_TURN = 50;
/** No attempt begins later in a turn: a slow receiver does not either. */
const TURN_MS = 5_000;
/** Longer than an attempt can take; renewed before each. The webhook of a process that died waits so long. */
const LEASE_MS = 60_000;
const LOG_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

export type WebhookJobDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  secrets: WebhookSecrets;
  post: PostWebhook;
  /** Tells the owner that a webhook was disabled, in the transaction that does it. */
  tellDisabled(tx: Db, row: Webhook, reason: 'gone' | 'failing'): Promise<void>;
};

/** An event and its place in the feed. */
type Entry = { place: number; event: AccountEvent };

export type WebhookJob = ReturnType<typeof createWebhookJob>;

export function createWebhookJob(deps: WebhookJobDeps) {
  const { db, clock, random, log, secrets, post, tellDisabled } = deps;
  const turns = createTurns({ most: CONCURRENCY, mostOfOwner: CONCURRENCY_OF_ACCOUNT });
  let loop: Loop | null = null;
  /** Whether somebody waits for a place. */
  let isShort = false;

  /** Writes down what came of an event; false when this webhook's turn is over. */
  async function note(
    lease: Lease,
    row: Webhook,
    entry: Entry,
    attempt: Attempt,
  ): Promise<boolean> {
    const { event } = entry;
    const nowMs = clock.now();
    const outcome = afterAttempt(attempt, row, nowMs);
    const record = { webhook: row.id, event: event.id, status: attempt.status };
    if (outcome.kind === 'next' && outcome.state === 'delivered') {
      log.debug(record, 'event delivered to a webhook');
    } else {
      log.warn({ ...record, error: attempt.error, outcome: outcome.kind }, 'webhook not delivered');
    }
    return db.transaction().execute(async (tx) => {
      const change = { ...changeOf(outcome, entry), updated_at: nowMs };
      if (!(await updateLeased(tx, lease, row.after_feed_no, change))) return false;
      await noteAttempt(tx, {
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
      if (outcome.kind === 'disable') await tellDisabled(tx, row, outcome.reason);
      return outcome.kind === 'next';
    });
  }

  /** Sends one event, or passes over it when it is not wanted; false when the turn is over. */
  async function take(lease: Lease, entry: Entry, signal: AbortSignal): Promise<boolean> {
    const { event, place } = entry;
    const nowMs = clock.now();
    // Read afresh before each event: its owner may have changed, disabled or removed it.
    const row = await leaseWebhook(db, lease, { nowMs, untilMs: nowMs + LEASE_MS });
    if (row === undefined || place <= row.after_feed_no) return row !== undefined;
    if (!wantsEvent(row, event)) {
      const change = { after_feed_no: place };
      return updateLeased(db, lease, row.after_feed_no, change);
    }
    const request = secrets.request(row, event, nowMs);
    return note(lease, row, entry, await post(request, signal));
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
        if (isOver() || !(await take(lease, entry, signal))) return;
      }
    } finally {
      await releaseWebhook(db, lease);
    }
  }

  async function turn(id: string, signal: AbortSignal): Promise<void> {
    try {
      await serve(id, signal);
      if (isShort) loop?.wake();
    } catch (error) {
      if (!signal.aborted) log.error({ err: error, webhook: id }, 'a webhook was not served');
    }
  }

  /** Begins turns of webhooks that have something to send, and waits for none of them. */
  async function fillPlaces(signal: AbortSignal): Promise<void> {
    isShort = false;
    const ready = await listReadyWebhooks(db, clock.now(), BATCH);
    for (const { id, account_id: owner } of ready) {
      if (!turns.begin({ id, owner }, () => turn(id, signal))) isShort = true;
    }
  }

  return {
    /** One turn for every webhook that has something to send and finds a place. */
    async runOnce(): Promise<void> {
      await fillPlaces(new AbortController().signal);
      await turns.ended();
    },

    /** Removes old deliveries from the log. */
    sweep: (tx: Db) => deleteOldDeliveries(tx, clock.now() - LOG_KEPT_MS),

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: INTERVAL_MS,
        run: fillPlaces,
        onError: (error) => log.error({ err: error }, 'webhooks were not served'),
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
