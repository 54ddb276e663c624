/** Delivers the signed outcomes of examinations to the central API. */
import { messageOf } from '#shared/runtime/errors.ts';
import type { CentralClient } from '../../central-client.ts';
import { type Delivery, type Outcome, outcomeOf } from '../../store/outbox.service.ts';

const OK = 200;
/** The report has ended, another validator examines it, or it was removed. */
const MOOT_STATUSES: readonly number[] = [403, 404];

export function createReportDelivery(central: Pick<CentralClient, 'postReportOutcome'>): Delivery {
  async function send(id: string, body: string): Promise<Outcome> {
    const { status, text } = await central.postReportOutcome(id, body);
    if (status === OK || MOOT_STATUSES.includes(status)) return { state: 'delivered' };
    return outcomeOf(status, `${status}: ${text}`);
  }

  return {
    deliver: ({ subject, body }) =>
      send(subject, body).catch((error: unknown) => ({
        state: 'unavailable',
        reason: messageOf(error),
      })),
    // The report expires.
    onParked: async () => undefined,
  };
}
