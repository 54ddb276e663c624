/** What outlasts its request: logs and terminals of pods, events of accounts, put together. */
import type { HttpServer } from '#shared/http/server.ts';
import { requireOwnPod } from '../market/pods/pod-access.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import { registerEventStreamRoutes } from './events/event.routes.ts';
import { createEventStreams } from './events/event-stream.ts';
import { registerPodLogRoutes } from './streams/pod-logs.routes.ts';
import { createPodLogs } from './streams/pod-logs.ts';
import { registerStreamTicketRoutes } from './streams/stream-ticket.routes.ts';
import { registerTerminalRoutes } from './streams/terminal.routes.ts';
import { createTerminals } from './streams/terminal.service.ts';

/** Registers their routes below /api. */
export function registerStreams(api: HttpServer, deps: CentralDeps): void {
  const { db, clock, random, log, agents } = deps.ports;
  const { stopping, tickets, credentials, notifier } = deps;
  registerPodLogRoutes(api, {
    logs: createPodLogs({ db, clock, agents, stopping }),
    credentials,
  });
  registerTerminalRoutes(api, {
    terminals: createTerminals({ db, clock, log, agents, stopping }),
    credentials,
  });
  registerEventStreamRoutes(api, {
    events: createEventStreams({ db, clock, random, log, notifier, stopping }),
    credentials,
  });
  registerStreamTicketRoutes(api, {
    tickets,
    requireOwnPod: (accountId, podId) => requireOwnPod(db, accountId, podId, clock.now()),
  });
}
