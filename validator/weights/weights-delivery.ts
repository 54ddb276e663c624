/** Posts the weights of an epoch, reads them back and compares. */
import { LatestSetWeightsRequest } from '#shared/api/central/set-weights.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { CentralClient } from '../central-client.ts';
import { type Delivery, type Outcome, outcomeOf } from '../store/outbox.service.ts';
import type { EpochState, EvidenceStore, OutboxRow } from '../store/tables.ts';
import { setEpochState } from './epoch.store.ts';

export type WeightsDeliveryOptions = {
  store: EvidenceStore;
  log: Log;
  validator: Hotkey;
  central: Pick<CentralClient, 'postWeights' | 'readWeights'>;
};

export function createWeightsDelivery({
  store,
  log,
  validator,
  central,
}: WeightsDeliveryOptions): Delivery {
  async function send(message: OutboxRow): Promise<Outcome> {
    const payload = LatestSetWeightsRequest.parse(JSON.parse(message.body));
    // Last check before sending, because empty weights are never posted.
    if (payload.weights.every((weight) => weight === 0)) {
      return { state: 'refused', reason: 'the weights are empty' };
    }
    const { status, text } = await central.postWeights(payload);
    if (status !== 200) return outcomeOf(status, `status ${status}: ${text}`);
    const shown = canonicalJson(await central.readWeights());
    const expected = canonicalJson({ ...payload, validator_key: validator });
    const state: EpochState = shown === expected ? 'confirmed' : 'differs';
    await setEpochState(store, Number(message.subject), state);
    if (state === 'confirmed') log.info({ epoch: message.subject }, 'weights posted');
    else log.error({ epoch: message.subject, shown }, 'central API publishes other weights');
    return { state: 'delivered' };
  }

  return {
    async deliver(message: OutboxRow): Promise<Outcome> {
      return send(message).catch((error: unknown) => ({
        state: 'unavailable',
        reason: messageOf(error),
      }));
    },

    onParked: (message: OutboxRow) => setEpochState(store, Number(message.subject), 'refused'),
  };
}
