/** API keys: managed by their owner with a session, checked on every request. */
import type { z } from 'zod';
import { microOrNull, microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { ApiKey, ApiKeyRefusal, Database, Db } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { KEY_SCOPES, type KeyScope, type UserIdentity } from '../../platform/identity.ts';
import { lockAccount } from '../auth/account-access.ts';
import { API_KEY_PREFIX, type ApiKeySecrets, apiKeyHash } from '../auth/api-key-secret.ts';
import { scopesIn } from '../auth/user-credentials.ts';
import type {
  ApiKeyRefusals,
  ApiKeyResponse,
  CreateApiKey,
  UpdateApiKey,
} from './api-key.schemas.ts';
import {
  countPodsByKey,
  deleteApiKeysOf,
  findApiKey,
  findApiKeyByHash,
  insertApiKey,
  listActiveKeyIds,
  listApiKeys,
  listRefusals,
  touchApiKey,
  updateApiKey,
} from './api-key.store.ts';

const MAX_KEYS_PER_ACCOUNT = 100;
/** Shortest time between two writes of a key's last use. */
const LAST_USED_RESOLUTION_MS = 60_000;
const MAX_KEY_CHARS = 100;

export type ApiKeys = ReturnType<typeof createApiKeys>;

export type ApiKeysDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  secrets: ApiKeySecrets;
  /** If false, the full key is shown only when it is created. */
  retrievable: boolean;
  budgets: KeyBudgets;
};

/** Micro-dollars; null for no limit. */
export type BudgetLimits = { dailyUusd: number | null; totalUusd: number | null };

/** Budgets and spending of keys, which the money module implements. Maps are by key id. */
export type KeyBudgets = {
  /** Limits of these keys. Keys without limits are omitted. */
  limitsOf(db: Db, keyIds: readonly string[]): Promise<ReadonlyMap<string, BudgetLimits>>;
  /** Micro-dollars spent today (UTC) and since the creation. Keys that spent nothing are omitted. */
  spentBy(
    db: Db,
    keyIds: readonly string[],
    nowMs: number,
  ): Promise<ReadonlyMap<string, { todayUusd: number; totalUusd: number }>>;
  /** Stores the limits of a new key. */
  add(tx: Db, key: { id: string; accountId: string }, limits: BudgetLimits): Promise<void>;
  /** Changes the limits of a key, and reschedules the stop of its pods. Locks the pods and the account. */
  change(
    tx: Db,
    key: { id: string; accountId: string },
    limits: Partial<BudgetLimits>,
    nowMs: number,
  ): Promise<void>;
};

const NO_LIMITS: BudgetLimits = { dailyUusd: null, totalUusd: null };
const NOTHING = { todayUusd: 0, totalUusd: 0 };

type Facts = { podsCount: number; limits: BudgetLimits; spent: typeof NOTHING };
const NEW_KEY: Facts = { podsCount: 0, limits: NO_LIMITS, spent: NOTHING };

export function createApiKeys(deps: ApiKeysDeps) {
  const { db, clock, random, log, secrets, retrievable, budgets } = deps;

  function isActive(row: ApiKey): boolean {
    return row.is_active === 1 && (row.expires_at === null || clock.now() < row.expires_at);
  }

  function toResponse(row: ApiKey, key: string | null, facts: Facts): ApiKeyResponse {
    const { podsCount, limits, spent } = facts;
    return {
      id: row.id,
      user_id: row.account_id,
      name: row.name,
      masked_key: `${row.prefix}...${row.suffix}`,
      key,
      is_active: isActive(row),
      created_at: naiveUtc(row.created_at),
      updated_at: naiveUtc(row.updated_at),
      expires_at: row.expires_at === null ? null : naiveUtc(row.expires_at),
      last_used: row.last_used_at === null ? null : naiveUtc(row.last_used_at),
      scopes: scopesIn(row.scopes_json),
      workspace_id: null,
      created_by_user_id: row.account_id,
      daily_budget_usd: usdOrNull(limits.dailyUusd),
      max_budget_usd: usdOrNull(limits.totalUusd),
      spent_today_usd: microToUsd(spent.todayUusd),
      spent_total_usd: microToUsd(spent.totalUusd),
      pod_visibility: 'account',
      pods_count: podsCount,
    };
  }

  /** Returns the full key to callers with a session only. A caller with an API key gets null, even for the same key. */
  function fullKey(row: ApiKey, caller: UserIdentity): string | null {
    const isVisible = caller.credential.type === 'session' && row.key_sealed !== '';
    return isVisible && retrievable ? secrets.open(row.key_sealed, row.key_hash) : null;
  }

  async function ownKey(handle: Db, caller: UserIdentity, id: string): Promise<ApiKey> {
    const row = await findApiKey(handle, id);
    if (row === undefined) throw new ApiError('not_found', 'API key not found');
    if (row.account_id !== caller.accountId) {
      throw new ApiError('forbidden', 'This API key belongs to another account');
    }
    return row;
  }

  async function shown(row: ApiKey, caller: UserIdentity): Promise<ApiKeyResponse> {
    const factsOf = await factsAbout(caller.accountId, [row.id]);
    return toResponse(row, fullKey(row, caller), factsOf(row.id));
  }

  async function factsAbout(accountId: string, ids: readonly string[]) {
    const pods = await countPodsByKey(db, accountId);
    const limits = await budgets.limitsOf(db, ids);
    const spent = await budgets.spentBy(db, ids, clock.now());
    return (id: string): Facts => ({
      podsCount: pods.get(id) ?? 0,
      limits: limits.get(id) ?? NO_LIMITS,
      spent: spent.get(id) ?? NOTHING,
    });
  }

  /** Adds a key in the caller's transaction and returns it with its full text. */
  async function add(
    tx: Db,
    accountId: string,
    {
      name,
      expires_at,
      scopes,
    }: Pick<CreateApiKey, 'name'> & Partial<Pick<CreateApiKey, 'expires_at' | 'scopes'>>,
  ) {
    const { key, prefix, suffix, hash, sealed } = secrets.create();
    const nowMs = clock.now();
    const row: ApiKey = {
      id: random.uuid(),
      account_id: accountId,
      name,
      prefix,
      suffix,
      key_hash: hash,
      key_sealed: retrievable ? sealed : '',
      is_active: 1,
      scopes_json: scopes === undefined ? null : JSON.stringify(inOrder(scopes)),
      expires_at: expires_at ?? null,
      last_used_at: null,
      deleted_at: null,
      created_at: nowMs,
      updated_at: nowMs,
    };
    await insertApiKey(tx, row);
    return { row, key };
  }

  return {
    add,

    /** Authenticates a key. Throws `unauthorized` or `api_key_inactive`. */
    async recognise(key: string): Promise<ApiKey> {
      const isWellFormed = key.startsWith(API_KEY_PREFIX) && key.length <= MAX_KEY_CHARS;
      const row = isWellFormed ? await findApiKeyByHash(db, apiKeyHash(key)) : undefined;
      if (row === undefined) throw new ApiError('unauthorized', 'API key not found');
      if (!isActive(row)) throw new ApiError('api_key_inactive', 'API key is inactive');
      const nowMs = clock.now();
      const staleMs = nowMs - LAST_USED_RESOLUTION_MS;
      if (row.last_used_at === null || row.last_used_at <= staleMs) {
        // The key stays usable while the database is read-only.
        await touchApiKey(db, row.id, nowMs, staleMs).catch((error: unknown) =>
          log.warn({ err: error }, 'noting the use of an API key failed'),
        );
      }
      return row;
    },

    listActive: (ids: readonly string[]) => listActiveKeyIds(db, ids, clock.now()),

    async list(caller: UserIdentity): Promise<ApiKeyResponse[]> {
      const rows = await listApiKeys(db, caller.accountId);
      const factsOf = await factsAbout(
        caller.accountId,
        rows.map(({ id }) => id),
      );
      return rows.map((row) => toResponse(row, fullKey(row, caller), factsOf(row.id)));
    },

    async get(caller: UserIdentity, id: string): Promise<ApiKeyResponse> {
      return shown(await ownKey(db, caller, id), caller);
    },

    /**
     * Creates a key in `tx` and returns it in full. Throws `bad_request` above the limit, and for an expiry in the
     * past.
     */
    async createIn(tx: Db, caller: UserIdentity, body: CreateApiKey): Promise<ApiKeyResponse> {
      if (body.expires_at !== undefined && body.expires_at <= clock.now()) {
        throw new ApiError('bad_request', 'expires_at is in the past');
      }
      await lockAccount(tx, caller);
      const present = await listApiKeys(tx, caller.accountId);
      if (present.length >= MAX_KEYS_PER_ACCOUNT) {
        const message = `An account has at most ${MAX_KEYS_PER_ACCOUNT} API keys`;
        throw new ApiError('bad_request', message, {
          hint: 'Delete a key that is no longer used.',
        });
      }
      const { row, key } = await add(tx, caller.accountId, body);
      const limits = {
        dailyUusd: microOrNull(body.daily_budget_usd),
        totalUusd: microOrNull(body.max_budget_usd),
      };
      await budgets.add(tx, { id: row.id, accountId: caller.accountId }, limits);
      return toResponse(row, key, { ...NEW_KEY, limits });
    },

    async update(caller: UserIdentity, id: string, body: UpdateApiKey): Promise<ApiKeyResponse> {
      const limits = limitsIn(body);
      const changed = await moneyTransaction(deps, async (tx) => {
        await ownKey(tx, caller, id);
        // Comes first, because it locks pods and the account, and transactions lock these before keys.
        if (limits !== null) {
          await budgets.change(tx, { id, accountId: caller.accountId }, limits, clock.now());
        }
        await lockRow(tx, 'api_keys', id);
        const row = await ownKey(tx, caller, id);
        const changes = {
          name: body.name ?? row.name,
          is_active: body.is_active === undefined ? row.is_active : body.is_active ? 1 : 0,
          expires_at: body.expires_at === undefined ? row.expires_at : body.expires_at,
          updated_at: clock.now(),
        } as const;
        if (!(await updateApiKey(tx, id, changes))) {
          throw new ApiError('not_found', 'API key not found');
        }
        return { ...row, ...changes };
      });
      return shown(changed, caller);
    },

    /** Deletes a key and wipes its sealed text. Later requests with the key get 401. */
    async remove(caller: UserIdentity, id: string): Promise<ApiKeyResponse> {
      const row = await ownKey(db, caller, id);
      const nowMs = clock.now();
      const changes = {
        is_active: 0,
        key_sealed: '',
        updated_at: nowMs,
        deleted_at: nowMs,
      } as const;
      if (!(await updateApiKey(db, id, changes))) {
        throw new ApiError('not_found', 'API key not found');
      }
      return shown({ ...row, ...changes }, caller);
    },

    /** Deletes every key of an account that is being removed. */
    removeAll: (tx: Db, accountId: string) => deleteApiKeysOf(tx, accountId, clock.now()),

    /** Requests that a budget of the key refused, newest first. */
    async refusals(caller: UserIdentity, id: string): Promise<z.output<typeof ApiKeyRefusals>> {
      await ownKey(db, caller, id);
      return { refusals: (await listRefusals(db, id)).map(toRefusal) };
    },
  };
}

/** The limits that a request changes; null if it changes none. */
function limitsIn(body: UpdateApiKey): Partial<BudgetLimits> | null {
  const { daily_budget_usd: daily, max_budget_usd: total } = body;
  if (daily === undefined && total === undefined) return null;
  return {
    ...(daily === undefined ? {} : { dailyUusd: microOrNull(daily) }),
    ...(total === undefined ? {} : { totalUusd: microOrNull(total) }),
  };
}

/** Each scope once, in the order of the catalogue. */
function inOrder(scopes: readonly KeyScope[]): KeyScope[] {
  return KEY_SCOPES.filter((scope) => scopes.includes(scope));
}

function usdOrNull(uusd: number | null): number | null {
  return uusd === null ? null : microToUsd(uusd);
}

function toRefusal(row: ApiKeyRefusal): z.output<typeof ApiKeyRefusals>['refusals'][number] {
  return {
    id: row.id,
    api_key_id: row.api_key_id,
    event: 'budget_exceeded',
    created_at: naiveUtc(row.created_at),
    window: row.budget_window,
    route: row.route,
    amount_usd: microToUsd(row.amount_uusd),
    budget_usd: microToUsd(row.budget_uusd),
    spent_usd: microToUsd(row.spent_uusd),
  };
}
