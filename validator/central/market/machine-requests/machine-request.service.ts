/** What renters look for and nobody offers yet (contract 8, marketplace reference 1.8 and 6). */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, Db, MachineRequest } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { setDue } from '../../platform/schedule/due.ts';
import { newRequest, toResponse } from './machine-request.row.ts';
import type { MachineRequestCreate, MachineRequestResponse } from './machine-request.schemas.ts';
import {
  clearMachineRequestsOf,
  countPending,
  dropOldClosed,
  findMachineRequest,
  findPendingLike,
  insertMachineRequest,
  listFulfilled,
  listMachineRequests,
  moveMachineRequest,
} from './machine-request.store.ts';

const MAX_PENDING_PER_ACCOUNT = 50;
/** Older closed ones of the account go with its next request. */
const CLOSED_KEPT_PER_ACCOUNT = 500;

export type MachineRequests = ReturnType<typeof createMachineRequests>;

/** Rules of the renter's side. */
export function createMachineRequests(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;

  async function own(handle: Db, caller: UserIdentity, id: string): Promise<MachineRequest> {
    const row = await findMachineRequest(handle, id);
    if (row === undefined) throw new ApiError('not_found', 'Machine request not found');
    if (row.account_id === caller.accountId) return row;
    throw new ApiError('forbidden', 'This machine request belongs to another account');
  }

  return {
    /** Oldest first. */
    async list(caller: UserIdentity): Promise<MachineRequestResponse[]> {
      return (await listMachineRequests(db, caller.accountId)).map(toResponse);
    },

    async get(caller: UserIdentity, id: string): Promise<MachineRequestResponse> {
      return toResponse(await own(db, caller, id));
    },

    /** In `tx`; the open one where the account asks for the same. Throws `email_not_verified`, or `bad_request` with too many. */
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
      const present = await findPendingLike(tx, row);
      if (present !== undefined) return toResponse(present);
      if ((await countPending(tx, accountId)) >= MAX_PENDING_PER_ACCOUNT) {
        throw new ApiError(
          'bad_request',
          `An account has at most ${MAX_PENDING_PER_ACCOUNT} pending machine requests`,
          { hint: 'Cancel one that is no longer needed.' },
        );
      }
      await dropOldClosed(tx, accountId, CLOSED_KEPT_PER_ACCOUNT);
      await insertMachineRequest(tx, row);
      await setDue(tx, 'machine-request-offer', row.id, row.created_at);
      return toResponse(row);
    },

    /** Throws `bad_request` for one that is not pending. */
    cancel(caller: UserIdentity, id: string): Promise<MachineRequestResponse> {
      return db.transaction().execute(async (tx) => {
        await own(tx, caller, id);
        const moved = await moveMachineRequest(tx, id, 'cancelled', { updated_at: clock.now() });
        const row = await own(tx, caller, id);
        if (moved) return toResponse(row);
        throw new ApiError('bad_request', `The machine request is ${row.state} already`, {
          hint: 'Only pending machine requests can be cancelled.',
        });
      });
    },
  };
}

/** The account's own, whatever its state; null for any other. */
export async function ownMachineRequest(
  db: Db,
  accountId: string,
  id: string,
): Promise<MachineRequest | null> {
  const row = await findMachineRequest(db, id);
  return row?.account_id === accountId ? row : null;
}

/** The account's request that a node was added for, by node; of several the latest. */
export async function requestsByNode(db: Db, accountId: string): Promise<Map<string, string>> {
  const found = await listFulfilled(db, accountId);
  return new Map(
    found.flatMap(({ id, fulfilled_executor_id: nodeId }) =>
      nodeId === null ? [] : [[nodeId, id] as const],
    ),
  );
}

/** Closes those of an account that is being deleted, and clears what it wrote in them. */
export function forgetMachineRequests(tx: Db, accountId: string, nowMs: number): Promise<void> {
  return clearMachineRequestsOf(tx, accountId, nowMs);
}
