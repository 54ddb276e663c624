/** Webhooks of an account: creation, changes, rotation of secrets, and replay of events. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, Db, Webhook as WebhookRow } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { feedEnd, placeOfTime } from '../events/event-feed.ts';
import type {
  CreateWebhook,
  ReplayWebhook,
  UpdateWebhook,
  Webhook,
  WebhookWithSecret,
} from './webhook.schemas.ts';
import { fresh, subscribedTypes } from './webhook.state.ts';
import {
  deleteWebhooks,
  findWebhook,
  insertWebhook,
  listWebhooks,
  updateWebhook,
} from './webhook.store.ts';
import { makeSecret, rotated, type WebhookSecrets } from './webhook-message.ts';
import { type Targets, targetProblem } from './webhook-post.ts';

const MAX_PER_ACCOUNT = 10;

export type WebhooksDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  secrets: WebhookSecrets;
  targets: Targets;
};

export type Webhooks = ReturnType<typeof createWebhooks>;

export function createWebhooks({ db, clock, random, secrets, targets }: WebhooksDeps) {
  function requireTarget(url: string): string {
    const problem = targetProblem(url, targets);
    if (problem === null) return url;
    throw invalidField('body.url', `The address ${problem}`);
  }

  /** Changes a webhook of the caller while the account's row is locked. */
  async function changeIn<T>(
    tx: Db,
    { accountId }: UserIdentity,
    id: string,
    change: (row: WebhookRow) => Promise<T>,
  ): Promise<T> {
    await lockRow(tx, 'accounts', accountId);
    return change(await requireWebhook(tx, accountId, id));
  }

  function changeOwn<T>(
    caller: UserIdentity,
    id: string,
    change: (tx: Db, row: WebhookRow) => Promise<T>,
  ): Promise<T> {
    const work = (tx: Db) => changeIn(tx, caller, id, (row) => change(tx, row));
    return db.transaction().execute(work);
  }

  async function save(tx: Db, row: WebhookRow, change: Partial<WebhookRow>): Promise<Webhook> {
    const all = { ...change, updated_at: clock.now() };
    await updateWebhook(tx, row.id, all);
    return toResponse({ ...row, ...all });
  }

  return {
    async list({ accountId }: UserIdentity): Promise<Webhook[]> {
      return (await listWebhooks(db, accountId)).map(toResponse);
    },

    async get({ accountId }: UserIdentity, id: string): Promise<Webhook> {
      return toResponse(await requireWebhook(db, accountId, id));
    },

    /**
     * Returns the creation of a webhook that receives events from now on, to be called in a transaction. Throws
     * `validation_error` for a URL that is not allowed; the creation throws `bad_request` above the limit.
     */
    async creation(
      caller: UserIdentity,
      body: CreateWebhook,
    ): Promise<(tx: Db) => Promise<WebhookWithSecret>> {
      const { accountId } = caller;
      const url = requireTarget(body.url);
      const after = await feedEnd(db, accountId);
      const id = random.uuid();
      const secret = makeSecret(random);
      const nowMs = clock.now();
      const row: WebhookRow = {
        id,
        account_id: accountId,
        url,
        description: body.description ?? '',
        events_json: JSON.stringify(body.events ?? []),
        secret_sealed: secrets.seal(secret, id),
        replaced_json: '[]',
        is_enabled: 1,
        disabled_reason: null,
        after_feed_no: after,
        ...fresh(nowMs),
        lease_until: 0,
        lease_token: null,
        created_at: nowMs,
        updated_at: nowMs,
      };
      return async (tx) => {
        await lockAccount(tx, caller);
        if ((await listWebhooks(tx, accountId)).length >= MAX_PER_ACCOUNT) {
          throw new ApiError('bad_request', `An account has at most ${MAX_PER_ACCOUNT} webhooks`, {
            hint: 'Delete a webhook that is no longer used.',
          });
        }
        await insertWebhook(tx, row);
        return { ...toResponse(row), secret };
      };
    },

    /** Updates the webhook. If the URL changes or the webhook is enabled, the waiting event is sent at once. */
    update(caller: UserIdentity, id: string, body: UpdateWebhook): Promise<Webhook> {
      const { url, description, events, enabled } = body;
      return changeOwn(caller, id, (tx, row) => {
        const change: Partial<WebhookRow> = {};
        if (url !== undefined) change.url = requireTarget(url);
        if (description !== undefined) change.description = description;
        if (events !== undefined) change.events_json = JSON.stringify(events);
        if (enabled !== undefined) {
          change.is_enabled = enabled ? 1 : 0;
          change.disabled_reason = null;
        }
        if (enabled === true || url !== undefined) Object.assign(change, fresh(clock.now()));
        return save(tx, row, change);
      });
    },

    /** Deletes the webhook. Waiting events are not sent. */
    remove(caller: UserIdentity, id: string): Promise<Webhook> {
      return changeOwn(caller, id, async (tx, row) => {
        await deleteWebhooks(tx, [id]);
        return toResponse(row);
      });
    },

    /**
     * Replaces the secret in `tx`. Each replaced secret also signs for a day. Throws `conflict` after too many
     * rotations in a day.
     */
    rotateSecret(tx: Db, caller: UserIdentity, id: string): Promise<WebhookWithSecret> {
      return changeIn(tx, caller, id, async (row) => {
        const secret = makeSecret(random);
        const change = rotated(row, secrets.seal(secret, id), clock.now());
        return { ...(await save(tx, row, change)), secret };
      });
    },

    /** Encrypts the stored answer to `rotateSecret`. */
    answersOf: secrets.answersOf,

    /** Sends the events since a time again, in order. Throws `bad_request` if there are no such events. */
    async replay(caller: UserIdentity, id: string, { since }: ReplayWebhook): Promise<Webhook> {
      const { accountId } = caller;
      const first = await placeOfTime(db, accountId, since);
      if (first === null) {
        throw new ApiError('bad_request', 'No event happened since this time', {
          hint: 'Use an earlier time.',
        });
      }
      return changeOwn(caller, id, (tx, row) =>
        save(tx, row, {
          after_feed_no: Math.min(row.after_feed_no, first - 1),
          ...fresh(clock.now()),
        }),
      );
    },
  };
}

/** Returns the webhook. Throws `not_found`, even for a webhook of another account. */
export async function requireWebhook(db: Db, accountId: string, id: string): Promise<WebhookRow> {
  const row = await findWebhook(db, accountId, id);
  if (row !== undefined) return row;
  throw new ApiError('not_found', 'This account has no such webhook');
}

export async function deleteWebhooksOf(tx: Db, accountId: string): Promise<void> {
  const rows = await listWebhooks(tx, accountId);
  await deleteWebhooks(
    tx,
    rows.map(({ id }) => id),
  );
}

function toResponse(row: WebhookRow): Webhook {
  const { failing_since: failingSince } = row;
  const waits = row.is_enabled === 1 && row.attempts > 0;
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    events: subscribedTypes(row),
    enabled: row.is_enabled === 1,
    disabled_reason: row.disabled_reason,
    failing_since: failingSince === null ? null : naiveUtc(failingSince),
    next_attempt_at: waits ? naiveUtc(row.retry_at) : null,
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}
