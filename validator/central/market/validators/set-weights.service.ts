/** The weights that validators say they set: kept for everybody to read (contract 11). */
import {
  isSetWeightsSignature,
  type LatestSetWeights,
  type LatestSetWeightsResponse,
  updatedAtMicros,
} from '#shared/api/central/set-weights.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Database } from '../../platform/database/tables.ts';
import { findSetWeights, putSetWeights } from './set-weights.store.ts';

/** How far ahead of ours a validator's clock may be: later sets must not be locked out. */
const MAX_AHEAD_MS = 300_000;
const MICROS_PER_MS = 1_000;

export type SetWeights = ReturnType<typeof createSetWeights>;

/** Rules of the set weights. */
export function createSetWeights({ db, clock }: { db: Database; clock: Clock }) {
  async function find(hotkey: string | null): Promise<LatestSetWeightsResponse> {
    const row = await findSetWeights(db, hotkey);
    if (row === undefined) throw new ApiError('not_found', 'No weights were set yet');
    // Written by us from a parsed payload: its form is known.
    const payload = JSON.parse(row.payload_json) as LatestSetWeights;
    return { ...payload, validator_key: row.validator_hotkey };
  }

  return {
    /** Of one validator. Throws `not_found`. */
    of: (hotkey: Hotkey) => find(hotkey),
    /** Of whoever set some last. Throws `not_found`. */
    newest: () => find(null),

    /**
     * A set that is there already is taken again, so that it may be sent twice. Throws `unauthorized` for a signature
     * that does not fit, 422 for a set that is older than the one on record or of the future.
     */
    async record(
      hotkey: Hotkey,
      payload: LatestSetWeights,
      authorization: string | undefined,
    ): Promise<{ success: true }> {
      if (!isSetWeightsSignature(authorization, payload, hotkey)) {
        throw new ApiError('unauthorized', 'The weights are not signed by this validator', {
          hint: 'Send Authorization: 0x + hex of the signature over the payload as Python writes it, keys sorted.',
        });
      }
      const micros = updatedAtMicros(payload);
      if (micros > (clock.now() + MAX_AHEAD_MS) * MICROS_PER_MS) {
        throw invalidField('body.updated_at', 'Lies in the future');
      }
      const row = {
        validator_hotkey: hotkey,
        payload_json: JSON.stringify(payload),
        updated_at_micros: micros,
        received_at: clock.now(),
      };
      if (await putSetWeights(db, row)) return { success: true };
      const present = await findSetWeights(db, hotkey);
      if (present?.payload_json === row.payload_json) return { success: true };
      throw invalidField('body.updated_at', 'Weights as new as these were set already');
    },
  };
}
