/** Machine requests of renters: GPUs that renters want and the market does not offer. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, Db, MachineRequest } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { setDue } from '../../platform/schedule/due.ts';
import type { MachineRequestCreate, MachineRequestResponse } from './machine-request.schemas.ts';
import {
  countPending,
  deleteOldClosed,
  findMachineRequest,
  findPendingLike,
  insertMachineRequest,
  listFulfilled,
  listMachineRequests,
  moveMachineRequest,
} from './machine-request.store.ts';
import { newRequest, toResponse } from './machine-request-response.ts';

export { clearMachineRequestsOf } from './machine-request.store.ts';

const MAX_PENDING_PER_ACCOUNT = 50;
/** Maximum number of closed requests per account. Creating a request deletes older closed requests. */
const MAX_CLOSED_PER_ACCOUNT = 500;

export type MachineRequests = ReturnType<typeof createMachineRequests>;

export function createMachineRequests(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;

  async function requireOwn(handle: Db, caller: UserIdentity, id: string): Promise<MachineRequest> {
    const row = await findMachineRequest(handle, id);
    if (row === undefined) throw new ApiError('not_found', 'Machine request not found');
    if (row.account_id === caller.accountId) return row;
    throw new ApiError('forbidden', 'This machine request belongs to another account');
  }

  return {
    /** Lists the account's requests, oldest first. */
    async list(caller: UserIdentity): Promise<MachineRequestResponse[]> {
      return (await listMachineRequests(db, caller.accountId)).map(toResponse);
    },

    async get(caller: UserIdentity, id: string): Promise<MachineRequestResponse> {
      return toResponse(await requireOwn(db, caller, id));
    },

    /**
     * Creates a request, or returns the account's pending request for the same machine. Throws `email_not_verified`, or
     * `bad_request` if the account has too many pending requests.
     */
    async createIn(
      tx: Db,
      caller: UserIdentity,
      body: MachineRequestCreate,
    ): Promise<MachineRequestResponse> {
      const { accountId } = caller;
      const account = await lockAccount(tx, caller);
      if (account.email_verified_at === null) {
        throw new ApiError('email_not_verified', 'Confirm your e-mail address first');
      }
      const row = newRequest(body, { id: random.uuid(), accountId, nowMs: clock.now() });
      const existing = await findPendingLike(tx, row);
      if (existing !== undefined) return toResponse(existing);
      if ((await countPending(tx, accountId)) >= MAX_PENDING_PER_ACCOUNT) {
        throw new ApiError(
          'bad_request',
          `An account has at most ${MAX_PENDING_PER_ACCOUNT} pending machine requests`,
          { hint: 'Cancel a request that is no longer needed.' },
        );
      }
      await deleteOldClosed(tx, accountId, MAX_CLOSED_PER_ACCOUNT);
      await insertMachineRequest(tx, row);
      await setDue(tx, 'machine-request-offer', row.id, row.created_at);
      return toResponse(row);
    },

    /** Throws `bad_request` if the request is not pending. */
    cancel(caller: UserIdentity, id: string): Promise<MachineRequestResponse> {
      return db.transaction().execute(async (tx) => {
        await requireOwn(tx, caller, id);
        const moved = await moveMachineRequest(tx, id, 'cancelled', { updated_at: clock.now() });
        const row = await requireOwn(tx, caller, id);
        if (moved) return toResponse(row);
        throw new ApiError('bad_request', `The machine request is already ${row.state}`, {
          hint: 'Only pending machine requests can be cancelled.',
        });
      });
    },
  };
}

/** Finds a request in any state; null if it does not exist or belongs to another account. */
export async function ownMachineRequest(
  db: Db,
  accountId: string,
  id: string,
): Promise<MachineRequest | null> {
  const row = await findMachineRequest(db, id);
  return row?.account_id === accountId ? row : null;
}

/** Maps a node's id to the latest request of the account that was fulfilled with the node. */
export async function requestsByNode(db: Db, accountId: string): Promise<Map<string, string>> {
  const found = await listFulfilled(db, accountId);
  return new Map(
    found.flatMap(({ id, fulfilled_executor_id: nodeId }) =>
      nodeId === null ? [] : [[nodeId, id] as const],
    ),
  );
}
