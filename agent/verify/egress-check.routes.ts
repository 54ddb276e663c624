/** POST /v1/egress-checks. */
import { EgressCheckRequest, EgressCheckResult } from '#shared/api/agent/host-checks.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { EgressCheckService } from './egress-check.service.ts';

export function registerEgressCheckRoutes(
  server: HttpServer,
  { egressChecks }: { egressChecks: Pick<EgressCheckService, 'check'> },
): void {
  const schema = { body: EgressCheckRequest, response: { 200: EgressCheckResult } };
  server.post('/v1/egress-checks', { schema }, (request) => egressChecks.check(request.body));
}
