/** POST /pods/{pod_id}/feedback (contract 5.2). */
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userOf } from '../../platform/identity.ts';
import { FeedbackParams, FeedbackRequest, FeedbackResponse } from './feedback.schemas.ts';
import { type FeedbackDeps, giveFeedback } from './feedback.service.ts';

/** Registers it. */
export function registerFeedbackRoutes(api: HttpServer, deps: FeedbackDeps & OnceDeps): void {
  api.post(
    '/pods/:pod_id/feedback',
    {
      config: { auth: 'user', once: 'feedback' },
      schema: {
        tags: ['Pods'],
        params: FeedbackParams,
        body: FeedbackRequest,
        response: { 201: FeedbackResponse },
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      const wish = { identity: userOf(request), podId: params.pod_id, request: body };
      await answerOnce(
        deps,
        { request, reply },
        { schema: FeedbackResponse, status: 201, effects: (tx) => giveFeedback(tx, deps, wish) },
      );
      return reply;
    },
  );
}
