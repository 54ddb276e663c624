/** Links accounts to validators. The validator's hotkey signs a proof for the account. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type AccountProof, verifyAccountProof } from '#shared/signing/account-proof.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Db } from '../../platform/database/tables.ts';
import { deleteHotkey, findHotkey, putHotkey } from './validator.store.ts';

/**
 * Largest age of a proof, and largest lead over the server's clock. The limit is the same as for signed request
 * headers.
 */
const MAX_AGE_MS = 300_000;
const MS_PER_SECOND = 1_000;

export type ValidatorAccounts = ReturnType<typeof createValidatorAccounts>;

/**
 * `validators` are the hotkeys of this market's validators. Proofs of other hotkeys are rejected, and stored proofs of
 * other hotkeys are ignored.
 */
export function createValidatorAccounts(deps: { clock: Clock; validators: readonly Hotkey[] }) {
  const { clock, validators } = deps;
  return {
    /** Returns the validator to which the account is linked; null if there is none. */
    async hotkeyOf(db: Db, accountId: string): Promise<Hotkey | null> {
      const proven = await findHotkey(db, accountId);
      return validators.find((validator) => validator === proven) ?? null;
    },

    /**
     * Links an account to the hotkey that signed a proof for it; null unlinks it. Throws `forbidden` for a bad proof.
     */
    async link(tx: Db, accountId: string, proof: AccountProof | null): Promise<void> {
      if (proof === null) return deleteHotkey(tx, accountId);
      const nowMs = clock.now();
      const isFresh = Math.abs(nowMs - proof.timestamp * MS_PER_SECOND) <= MAX_AGE_MS;
      if (!validators.includes(proof.hotkey)) {
        throw new ApiError('forbidden', 'The hotkey is not a validator of this market');
      }
      if (!isFresh || !verifyAccountProof(accountId, proof)) {
        throw new ApiError(
          'forbidden',
          'The proof is not signed by the hotkey for this account, or has expired',
          {
            hint: 'Run `npm run validator -- prove-account <id of the account>` and send its output within five minutes.',
          },
        );
      }
      await putHotkey(tx, { hotkey: proof.hotkey, account_id: accountId, proven_at: nowMs });
    },
  };
}

export { deleteHotkey };
