/** Who hears of machine requests: subscribed providers of a new one, its renter of the node that was added for it. */

import { matchesGpuType } from '#shared/api/gpu-type.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import { wants } from '../../accounts/notification-settings/notification-setting.service.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { requestFulfilledMail, requestOfferedMail } from '../../delivery/mail/mail-text.ts';
import type { Db, MachineRequest } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import { setDue } from '../../platform/schedule/due.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { huidOf } from '../executors/executor-response.ts';
import { catalogueEntryOf } from '../executors/machine-catalogue.ts';
import { findMachineRequest } from './machine-request.store.ts';

/** Told in one transaction; the rest in the next. */
const TOLD_AT_ONCE = 100;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 86_400_000;

/** Who wants to hear of GPUs of some types (providers' subscriptions). */
export type Subscriptions = {
  /** Every type that anybody subscribed to, as it was written. */
  types(db: Db): Promise<string[]>;
  /** Providers with an address that subscribed to one of them, by id from after `afterId` on. */
  subscribers(
    db: Db,
    gpuTypes: readonly string[],
    page: { afterId: string; limit: number },
  ): Promise<{ id: string; email: string }[]>;
};

export type RequestNewsDeps = {
  clock: Clock;
  random: Random;
  mails: Mails;
  wakeMail(): void;
  subscriptions: Subscriptions;
};

/** In the transaction that closed the request. */
export type TellFulfilled = (tx: Db, request: MachineRequest, actor: Actor) => Promise<void>;

export function createRequestNews(deps: RequestNewsDeps) {
  const { mails, subscriptions } = deps;
  const tellFulfilled: TellFulfilled = async (tx, request, actor) => {
    const { id, account_id: accountId, gpu_class, fulfilled_executor_id: node } = request;
    if (node === null) throw new Error(`machine request ${id} has no node`);
    await recordEvent(tx, deps, {
      accountId,
      subEventType: 'account.status',
      actor,
      payload: {
        pod_name: null,
        node,
        detail: 'machine_request_fulfilled',
        machine_request_id: id,
      },
    });
    if (request.notify === 0 || !(await wants(tx, accountId, 'machine_request'))) return;
    const { email } = await accountOf(tx, { accountId });
    await mails.add(tx, {
      accountId,
      to: email,
      kind: 'machine-request',
      content: requestFulfilledMail(gpu_class, huidOf(node)),
      dedupeKey: `machine-request:${id}:fulfilled`,
      usefulForMs: WEEK_MS,
    });
  };

  return {
    tellFulfilled,

    dueHandlers: {
      /** The subject is the request's id, and after a slash that of the provider that was told last. */
      'machine-request-offer': {
        async run(tx, { subject, nowMs }) {
          const [requestId = '', afterId = ''] = subject.split('/');
          const request = await findMachineRequest(tx, requestId);
          if (request?.state !== 'pending') return undefined;
          // No words of the renter or of other providers: whoever reads the mail knows neither.
          const named = catalogueEntryOf(request.gpu_class)?.name;
          if (named === undefined) return undefined;
          // One mail an hour from each renter: nobody's requests take the place of others' among a provider's mails.
          const hour = Math.floor(request.created_at / HOUR_MS);
          const types = (await subscriptions.types(tx)).filter((type) => isOf(request, type));
          const page = { afterId, limit: TOLD_AT_ONCE };
          const told = await subscriptions.subscribers(tx, types, page);
          for (const { id: providerId, email } of told) {
            await mails.add(tx, {
              providerId,
              to: email,
              kind: 'machine-request-offer',
              content: requestOfferedMail(requestId, named),
              dedupeKey: `machine-request-offer:${request.account_id}:${hour}:${providerId}`,
              usefulForMs: WEEK_MS,
            });
          }
          const last = told.at(-1)?.id;
          if (last !== undefined && told.length === TOLD_AT_ONCE) {
            await setDue(tx, 'machine-request-offer', `${requestId}/${last}`, nowMs);
          }
          return told.length === 0 ? undefined : { after: deps.wakeMail };
        },
      },
    } satisfies DueHandlers,
  };
}

/** Either may be a short type or a full name. */
function isOf({ gpu_class }: MachineRequest, gpuType: string): boolean {
  return matchesGpuType(gpuType, gpu_class) || matchesGpuType(gpu_class, gpuType);
}
