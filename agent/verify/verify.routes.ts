/** POST /v1/verify. */
import { VerifyRequest, VerifyResult } from '#shared/api/agent/inventory.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { VerifyService } from './verify.service.ts';

export function registerVerifyRoutes(
  server: HttpServer,
  { verify }: { verify: Pick<VerifyService, 'verify'> },
): void {
  const schema = { body: VerifyRequest, response: { 200: VerifyResult } };
  server.post('/v1/verify', { schema }, (request) => verify.verify(request.body));
}
