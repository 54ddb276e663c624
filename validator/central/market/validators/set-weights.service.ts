/** Weights that validators report as set on the chain. Every client can read them. */
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
import { findSetWeights, putSetWeights } from './validator.store.ts';

/** Largest accepted lead of a validator's clock. A timestamp far in the future would block later reports. */
const MAX_AHEAD_MS = 300_000;
const MICROS_PER_MS = 1_000;

export type SetWeights = ReturnType<typeof createSetWeights>;

export function createSetWeights({ db, clock }: { db: Database; clock: Clock }) {
  async function find(hotkey: string | null): Promise<LatestSetWeightsResponse> {
    const row = await findSetWeights(db, hotkey);
    if (row === undefined) throw new ApiError('not_found', 'No weights were set yet');
    // The column contains only validated payloads.
    const payload = JSON.parse(row.payload_json) as LatestSetWeights;
    return { ...payload, validator_key: row.validator_hotkey };
  }

  return {
    /** Throws `not_found` if the validator has reported no weights. */
    latestOf: (hotkey: Hotkey) => find(hotkey),
    /** Returns the newest report of all validators. Throws `not_found`. */
    latest: () => find(null),

    /**
     * Stores a report. Sending the stored report again succeeds. Throws `unauthorized` for an invalid signature, and
     * 422 for a report that is older than the stored one or in the future.
     */
    async record(
      hotkey: Hotkey,
      payload: LatestSetWeights,
      authorization: string | undefined,
    ): Promise<{ success: true }> {
      if (!isSetWeightsSignature(authorization, payload, hotkey)) {
        throw new ApiError('unauthorized', 'The weights are not signed by this validator', {
          hint: 'Send Authorization: 0x + hex of the signature over the payload as Python serializes it, with sorted keys.',
        });
      }
      const micros = updatedAtMicros(payload);
      if (micros > (clock.now() + MAX_AHEAD_MS) * MICROS_PER_MS) {
        throw invalidField('body.updated_at', 'Is in the future');
      }
      const row = {
        validator_hotkey: hotkey,
        payload_json: JSON.stringify(payload),
        updated_at_micros: micros,
        received_at: clock.now(),
      };
      if (await putSetWeights(db, row)) return { success: true };
      const stored = await findSetWeights(db, hotkey);
      if (stored?.payload_json === row.payload_json) return { success: true };
      throw invalidField('body.updated_at', 'Weights with this or a later time are already stored');
    },
  };
}
