/**
 * Notifies subscribed providers of a new machine request, and the renter when a provider has added a node for the
 * request.
 */

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

/** Maximum number of providers that one transaction notifies. */
const BATCH_SIZE = 100;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 86_400_000;

/** Providers' subscriptions to GPU types. */
export type Subscriptions = {
  /** Lists every type with at least one subscription, as the provider wrote it. */
  types(db: Db): Promise<string[]>;
  /**
   * Lists providers with an e-mail address and a subscription to one of the types, except banned providers, ordered by
   * id, starting after `afterId`.
   */
  subscribers(
    db: Db,
    gpuTypes: readonly string[],
    page: { afterId: string; limit: number },
  ): Promise<{ id: string; email: string }[]>;
};

export type RequestNotificationsDeps = {
  clock: Clock;
  random: Random;
  mails: Mails;
  wakeMail(): void;
  subscriptions: Subscriptions;
};

/** Runs in the transaction that fulfils the request. */
export type NotifyFulfilled = (tx: Db, request: MachineRequest, actor: Actor) => Promise<void>;

export function createRequestNotifications(deps: RequestNotificationsDeps) {
  const { mails, subscriptions } = deps;
  const notifyFulfilled: NotifyFulfilled = async (tx, request, actor) => {
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
    notifyFulfilled,

    dueHandlers: {
      /** Subject: the request's id, optionally followed by `/` and the id of the last notified provider. */
      'machine-request-offer': {
        async run(tx, { subject, nowMs }) {
          const [requestId = '', afterId = ''] = subject.split('/');
          const request = await findMachineRequest(tx, requestId);
          if (request?.state !== 'pending') return undefined;
          // The mail contains the canonical name, never text of the renter or of another provider.
          const gpuName = catalogueEntryOf(request.gpu_class)?.name;
          if (gpuName === undefined) return undefined;
          // At most one mail per renter, provider and hour, so that one renter's requests do not displace those of
          // other renters.
          const hour = Math.floor(request.created_at / HOUR_MS);
          const types = (await subscriptions.types(tx)).filter((type) => isSameType(request, type));
          const page = { afterId, limit: BATCH_SIZE };
          const notified = await subscriptions.subscribers(tx, types, page);
          for (const { id: providerId, email } of notified) {
            await mails.add(tx, {
              providerId,
              to: email,
              kind: 'machine-request-offer',
              content: requestOfferedMail(requestId, gpuName),
              dedupeKey: `machine-request-offer:${request.account_id}:${hour}:${providerId}`,
              usefulForMs: WEEK_MS,
            });
          }
          const last = notified.at(-1)?.id;
          if (last !== undefined && notified.length === BATCH_SIZE) {
            await setDue(tx, 'machine-request-offer', `${requestId}/${last}`, nowMs);
          }
          return notified.length === 0 ? undefined : { after: deps.wakeMail };
        },
      },
    } satisfies DueHandlers,
  };
}

/** Compares two GPU types, each a short type or a full name. */
function isSameType({ gpu_class }: MachineRequest, gpuType: string): boolean {
  return matchesGpuType(gpuType, gpu_class) || matchesGpuType(gpu_class, gpuType);
}
