/** POST /v1/challenges and POST /v1/challenges/{id}/open. */
import { z } from 'zod';
import {
  ChallengeRequest,
  Commitment,
  Opening,
  OpenRequest,
} from '#shared/api/agent/challenges.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { ChallengeService } from './challenge.service.ts';

/** Registers the routes. `stopping` aborts running work. */
export function registerChallengeRoutes(
  server: HttpServer,
  { challenges, stopping }: { challenges: ChallengeService; stopping: AbortSignal },
): void {
  server.post(
    '/v1/challenges',
    { schema: { body: ChallengeRequest, response: { 200: Commitment } } },
    (request) => challenges.commit(request.body, stopping),
  );
  server.post(
    '/v1/challenges/:id/open',
    {
      schema: {
        params: z.object({ id: z.uuid() }),
        body: OpenRequest,
        response: { 200: Opening },
      },
    },
    (request) => challenges.open(request.params.id, request.body, stopping),
  );
}
