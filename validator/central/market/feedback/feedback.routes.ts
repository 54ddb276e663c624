/** Route on which a renter sends feedback on a pod. */
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userOf } from '../../platform/identity.ts';
import { FeedbackParams, FeedbackRequest, FeedbackResponse } from './feedback.schemas.ts';
import { type FeedbackDeps, recordFeedback } from './feedback.service.ts';

export function registerFeedbackRoutes(api: HttpServer, deps: FeedbackDeps & OnceDeps): void {
  api.post(
    '/pods/:pod_id/feedback',
    {
      config: { auth: 'user', once: 'feedback' },
      schema: {
        tags: ['Pods'],
        summary: 'Send feedback about a pod',
        description:
          'Stores a rating and a comment for the operator, even after the pod has ended.',
        errors: {
          pod_not_found: 'the account never had such a pod',
          bad_request: 'an attachment does not exist, or the pod has too many entries',
        },
        params: FeedbackParams,
        body: FeedbackRequest,
        response: { 201: FeedbackResponse },
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      const feedback = { identity: userOf(request), podId: params.pod_id, request: body };
      await answerOnce(
        deps,
        { request, reply },
        {
          schema: FeedbackResponse,
          status: 201,
          effects: (tx) => recordFeedback(tx, deps, feedback),
        },
      );
      return reply;
    },
  );
}
