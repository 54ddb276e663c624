/** SSH keys of an account, which grant access to its pods. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db, SshKey } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { lockAccount } from '../auth/account-access.ts';
import type { CreateSshKey, SshKeyResponse } from './ssh-key.schemas.ts';
import {
  deleteSshKey,
  deleteSshKeysOf,
  findSshKey,
  findSshKeyByFingerprint,
  insertSshKey,
  listSshKeys,
  updateSshKey,
} from './ssh-key.store.ts';

const MAX_KEYS_PER_ACCOUNT = 100;

export type SshKeys = ReturnType<typeof createSshKeys>;

export function createSshKeys(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;

  return {
    async list(caller: UserIdentity): Promise<SshKeyResponse[]> {
      return (await listForAccount(db, caller.accountId)).map(toResponse);
    },

    async get(caller: UserIdentity, id: string): Promise<SshKeyResponse> {
      return toResponse(await requireOwnSshKey(db, caller.accountId, id));
    },

    /** If the account already has the key, returns the existing row with its name unchanged. */
    create(caller: UserIdentity, { name, public_key }: CreateSshKey): Promise<SshKeyResponse> {
      const { accountId } = caller;
      const nowMs = clock.now();
      const row: SshKey = {
        id: random.uuid(),
        account_id: accountId,
        name,
        public_key: public_key.text,
        fingerprint: public_key.fingerprint,
        created_at: nowMs,
        updated_at: nowMs,
      };
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, caller);
        const present = await findSshKeyByFingerprint(tx, accountId, row.fingerprint);
        if (present !== undefined) return toResponse(present);
        if ((await listSshKeys(tx, accountId)).length >= MAX_KEYS_PER_ACCOUNT) {
          throw new ApiError(
            'bad_request',
            `An account has at most ${MAX_KEYS_PER_ACCOUNT} SSH keys`,
            {
              hint: 'Delete a key that is no longer used.',
            },
          );
        }
        if (!(await insertSshKey(tx, row))) {
          throw new ApiError('conflict', 'This key is being added by another request');
        }
        return toResponse(row);
      });
    },

    update(
      caller: UserIdentity,
      id: string,
      { name, public_key }: CreateSshKey,
    ): Promise<SshKeyResponse> {
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'accounts', caller.accountId);
        const row = await requireOwnSshKey(tx, caller.accountId, id);
        const { text, fingerprint } = public_key;
        const same = await findSshKeyByFingerprint(tx, caller.accountId, fingerprint);
        if (same !== undefined && same.id !== id) {
          throw new ApiError('conflict', 'The account has this key under another id');
        }
        const changes = { name, public_key: text, fingerprint, updated_at: clock.now() };
        await updateSshKey(tx, id, changes);
        return toResponse({ ...row, ...changes });
      });
    },

    /** Deletes a key. Pods rented with the key accept it until their keys are changed. */
    remove(caller: UserIdentity, id: string): Promise<SshKeyResponse> {
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'accounts', caller.accountId);
        const row = await requireOwnSshKey(tx, caller.accountId, id);
        await deleteSshKey(tx, id);
        return toResponse(row);
      });
    },
  };
}

/** The account's keys, oldest first. */
export function listForAccount(db: Db, accountId: string): Promise<SshKey[]> {
  return listSshKeys(db, accountId);
}

/** Throws 404 for an unknown key, 403 for a key of another account. */
export async function requireOwnSshKey(db: Db, accountId: string, id: string): Promise<SshKey> {
  const row = await findSshKey(db, id);
  if (row === undefined) throw new ApiError('not_found', 'SSH key not found');
  if (row.account_id === accountId) return row;
  throw new ApiError('forbidden', 'This SSH key belongs to another account');
}

function toResponse(row: SshKey): SshKeyResponse {
  return {
    id: row.id,
    name: row.name,
    public_key: row.public_key,
    user_id: row.account_id,
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}

/** Deletes the keys of an account that is being removed. */
export function deleteSshKeys(tx: Db, accountId: string): Promise<void> {
  return deleteSshKeysOf(tx, accountId);
}
