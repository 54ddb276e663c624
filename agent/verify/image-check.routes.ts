/** POST /v1/image-checks. */
import { ImageCheckRequest, ImageCheckResult } from '#shared/api/agent/host-checks.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { ImageChecks } from './image-check.service.ts';

export function registerImageCheckRoutes(
  server: HttpServer,
  { imageChecks }: { imageChecks: Pick<ImageChecks, 'check'> },
): void {
  const schema = { body: ImageCheckRequest, response: { 200: ImageCheckResult } };
  server.post('/v1/image-checks', { schema }, (request) => imageChecks.check(request.body));
}
