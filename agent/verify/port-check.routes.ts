/** POST /v1/port-checks. */
import { PortCheckOpened, PortCheckRequest } from '#shared/api/agent/host-checks.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { PortCheckService } from './port-check.service.ts';

/** Registers it; ports are closed when `stopping` aborts. */
export function registerPortCheckRoutes(
  server: HttpServer,
  { portChecks, stopping }: { portChecks: PortCheckService; stopping: AbortSignal },
): void {
  const schema = { body: PortCheckRequest, response: { 200: PortCheckOpened } };
  server.post('/v1/port-checks', { schema }, (request) => portChecks.open(request.body, stopping));
}
