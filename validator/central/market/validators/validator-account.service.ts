/** Accounts that speak for a validator, because its hotkey said so (contract 9.2 and 11, `validator_hotkey`). */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type AccountProof, verifyAccountProof } from '#shared/signing/account-proof.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Db } from '../../platform/database/tables.ts';
import { dropHotkey, findHotkey, putHotkey } from './validator-account.store.ts';

/** How old a proof may be, and how far ahead of our clock: as for the headers that validators sign. */
const MAX_AGE_MS = 300_000;
const MS_PER_SECOND = 1_000;

export type ValidatorAccounts = ReturnType<typeof createValidatorAccounts>;

/** `validators`: those of this market; nobody else's hotkey is taken, or counts any more. */
export function createValidatorAccounts(deps: { clock: Clock; validators: readonly Hotkey[] }) {
  const { clock, validators } = deps;
  return {
    /** The validator that an account speaks for; null where it has proven none. */
    async hotkeyOf(db: Db, accountId: string): Promise<Hotkey | null> {
      const proven = await findHotkey(db, accountId);
      return validators.find((validator) => validator === proven) ?? null;
    },

    /** Links an account to the hotkey that signed for it; null unlinks it. Throws `forbidden` for a bad proof. */
    async link(tx: Db, accountId: string, proof: AccountProof | null): Promise<void> {
      if (proof === null) return dropHotkey(tx, accountId);
      const nowMs = clock.now();
      const isFresh = Math.abs(nowMs - proof.timestamp * MS_PER_SECOND) <= MAX_AGE_MS;
      if (!validators.includes(proof.hotkey)) {
        throw new ApiError('forbidden', 'The hotkey is no validator of this market');
      }
      if (!isFresh || !verifyAccountProof(accountId, proof)) {
        throw new ApiError('forbidden', 'The hotkey has not signed for this account just now', {
          hint: 'Send what `npm run validator -- prove-account <id of the account>` prints within five minutes.',
        });
      }
      await putHotkey(tx, { hotkey: proof.hotkey, account_id: accountId, proven_at: nowMs });
    },
  };
}

/** Of an account that ends. */
export const forgetHotkey = dropHotkey;
