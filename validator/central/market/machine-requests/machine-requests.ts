/** Composes machine requests: the renters' routes, the service for the provider portal, and the notifications. */
import type { HttpServer } from '#shared/http/server.ts';
import type { MailDeps } from '../../delivery/delivery.ts';
import type { OnceDeps } from '../../platform/idempotency/once.ts';
import { registerMachineRequestRoutes } from './machine-request.routes.ts';
import { createMachineRequests } from './machine-request.service.ts';
import { createPortalRequests } from './portal-request.service.ts';
import { createRequestNotifications, type Subscriptions } from './request-notifications.ts';

export function createMachineRequestParts(
  { ports, mails, wakeMail }: MailDeps,
  subscriptions: Subscriptions,
) {
  const { db, clock, random } = ports;
  const { notifyFulfilled, dueHandlers } = createRequestNotifications({
    clock,
    random,
    mails,
    wakeMail,
    subscriptions,
  });
  return {
    dueHandlers,

    /** Service for the provider portal. */
    portal: createPortalRequests({ db, clock, notifyFulfilled }),

    /** Registers the routes below /api. */
    register(api: HttpServer, once: OnceDeps): void {
      const requests = createMachineRequests({ db, clock, random });
      registerMachineRequestRoutes(api, { ...once, requests });
    },
  };
}
