/** API keys: managed by their owner with a session, checked on every request. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { ApiKey, Database, Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { lockAccount } from '../auth/account-access.ts';
import { API_KEY_PREFIX, type ApiKeySecrets, apiKeyHash } from '../auth/api-key-secret.ts';
import type { ApiKeyResponse, CreateApiKey, UpdateApiKey } from './api-key.schemas.ts';
import {
  countPodsByKey,
  deleteApiKeysOf,
  findApiKey,
  findApiKeyByHash,
  insertApiKey,
  listActiveKeyIds,
  listApiKeys,
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
  secrets: ApiKeySecrets;
  /** False: the full key is shown only when it is created. */
  retrievable: boolean;
};

export function createApiKeys({ db, clock, random, secrets, retrievable }: ApiKeysDeps) {
  function isActive(row: ApiKey): boolean {
    return row.is_active === 1 && (row.expires_at === null || clock.now() < row.expires_at);
  }

  function toResponse(row: ApiKey, key: string | null, podsCount: number): ApiKeyResponse {
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
      scopes: null,
      workspace_id: null,
      created_by_user_id: row.account_id,
      daily_budget_usd: null,
      max_budget_usd: null,
      spent_today_usd: 0,
      spent_total_usd: 0,
      pod_visibility: 'account',
      pods_count: podsCount,
    };
  }

  /** Returns the full key to sessions only; a caller with an API key gets null, even for that key. */
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
    const pods = await countPodsByKey(db, caller.accountId);
    return toResponse(row, fullKey(row, caller), pods.get(row.id) ?? 0);
  }

  /** Adds a key in the caller's transaction and returns it with its full text. */
  async function add(tx: Db, accountId: string, { name, expires_at }: CreateApiKey) {
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
        await touchApiKey(db, row.id, nowMs, staleMs);
      }
      return row;
    },

    /** Returns the ids of keys that are still active. */
    listActive: (ids: readonly string[]) => listActiveKeyIds(db, ids, clock.now()),

    async list(caller: UserIdentity): Promise<ApiKeyResponse[]> {
      const rows = await listApiKeys(db, caller.accountId);
      const pods = await countPodsByKey(db, caller.accountId);
      return rows.map((row) => toResponse(row, fullKey(row, caller), pods.get(row.id) ?? 0));
    },

    async get(caller: UserIdentity, id: string): Promise<ApiKeyResponse> {
      return shown(await ownKey(db, caller, id), caller);
    },

    async create(caller: UserIdentity, body: CreateApiKey): Promise<ApiKeyResponse> {
      if (body.expires_at !== undefined && body.expires_at <= clock.now()) {
        throw new ApiError('bad_request', 'expires_at is in the past');
      }
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, caller);
        const present = await listApiKeys(tx, caller.accountId);
        if (present.length >= MAX_KEYS_PER_ACCOUNT) {
          throw new ApiError(
            'bad_request',
            `An account has at most ${MAX_KEYS_PER_ACCOUNT} API keys`,
            {
              hint: 'Delete a key that is no longer used.',
            },
          );
        }
        const { row, key } = await add(tx, caller.accountId, body);
        return toResponse(row, key, 0);
      });
    },

    async update(caller: UserIdentity, id: string, body: UpdateApiKey): Promise<ApiKeyResponse> {
      const changed = await db.transaction().execute(async (tx) => {
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

    /** Deletes a key and wipes its sealed text. Requests with it get 401 from then on. */
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

    /** Returns an empty list, because budgets are not enforced. */
    async refusals(caller: UserIdentity, id: string): Promise<{ refusals: [] }> {
      await ownKey(db, caller, id);
      return { refusals: [] };
    },
  };
}
