/** Posts the weights of an epoch, reads them back and compares (validator reference 8.3). */
import { LatestSetWeightsRequest } from '#shared/api/central/set-weights.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { CentralClient } from '../central-client.ts';
import type { EpochState, Ledger, OutboxRow } from '../store/ledger.tables.ts';
import type { Delivery } from '../store/outbox/outbox.service.ts';
import { type Outcome, outcomeOf } from '../store/outbox/outbox.state.ts';
import { setEpochState } from './epoch.store.ts';

export type WeightsDeliveryOptions = {
  ledger: Ledger;
  log: Log;
  validator: Hotkey;
  central: Pick<CentralClient, 'postWeights' | 'readWeights'>;
};

export function createWeightsDelivery({
  ledger,
  log,
  validator,
  central,
}: WeightsDeliveryOptions): Delivery {
  async function send(letter: OutboxRow): Promise<Outcome> {
    const payload = LatestSetWeightsRequest.parse(JSON.parse(letter.body));
    // The last gate: whatever went wrong before, this is never said.
    if (payload.weights.every((weight) => weight === 0)) {
      return { state: 'refused', reason: 'the weights are empty' };
    }
    const { status, text } = await central.postWeights(payload);
    if (status !== 200) return outcomeOf(status, `status ${status}: ${text}`);
    const shown = canonicalJson(await central.readWeights());
    const expected = canonicalJson({ ...payload, validator_key: validator });
    const state: EpochState = shown === expected ? 'confirmed' : 'differs';
    await setEpochState(ledger, Number(letter.subject), state);
    if (state === 'confirmed') log.info({ epoch: letter.subject }, 'weights posted');
    else log.error({ epoch: letter.subject, shown }, 'the central API shows other weights');
    return { state: 'taken' };
  }

  return {
    async deliver(letter: OutboxRow): Promise<Outcome> {
      return send(letter).catch((error: unknown) => ({
        state: 'unavailable',
        reason: messageOf(error),
      }));
    },

    /** They will never be posted. */
    onParked: (letter: OutboxRow) => setEpochState(ledger, Number(letter.subject), 'refused'),
  };
}
