/** What outlasts its request: logs and terminals of pods, events of accounts, put together. */
import type { FastifyRequest } from 'fastify';
import { ApiError } from '#shared/errors.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { requireOwnPod } from '../pods/pod-access.ts';
import type { CentralDeps } from '../ports.ts';
import { registerEventStreamRoutes } from './event-stream.routes.ts';
import { createEventStreams } from './event-stream.ts';
import { registerPodLogRoutes } from './pod-logs.routes.ts';
import { createPodLogs } from './pod-logs.ts';
import { registerStreamTicketRoutes } from './stream-ticket.routes.ts';
import { registerTerminalRoutes } from './terminal.routes.ts';
import { createTerminals } from './terminal.service.ts';

/** Registers their routes below /api. */
export function registerStreams(api: HttpServer, deps: CentralDeps): void {
  const { db, clock, log, agents } = deps.ports;
  const { stopping, tickets, users, news } = deps;
  /** Only a refusal says that it does not: a failing database is no revocation. */
  async function credentialStands(request: FastifyRequest): Promise<boolean> {
    return users.identify({ headers: request.credential ?? {} }).then(
      () => true,
      (error: unknown) => !(error instanceof ApiError),
    );
  }

  registerPodLogRoutes(api, {
    logs: createPodLogs({ db, clock, agents, stopping }),
    credentialStands,
  });
  registerTerminalRoutes(api, {
    terminals: createTerminals({ db, clock, log, agents, stopping }),
    credentialStands,
  });
  registerEventStreamRoutes(api, {
    events: createEventStreams({ db, clock, log, news, stopping }),
    credentialStands,
  });
  registerStreamTicketRoutes(api, {
    tickets,
    requireOwnPod: (accountId, podId) => requireOwnPod(db, accountId, podId, clock.now()),
  });
}
