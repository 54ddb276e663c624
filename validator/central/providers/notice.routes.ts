/** Portal routes that announce and cancel the notice period of a node. */
import type { HttpServer } from '#shared/http/server.ts';
import { NoticePeriod } from '../market/executors/notice-period.ts';
import { SetNotice } from '../market/notices/notice.schemas.ts';
import type { Notices } from '../market/notices/notice.service.ts';
import { actorOf, providerOf } from '../platform/identity.ts';
import { type PortalAnswers, portalAnswer } from '../platform/portal-answer.ts';
import { NodeParams } from './node.schemas.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const response = { 200: portalAnswer(NoticePeriod) };

export function registerNoticeRoutes(
  portal: HttpServer,
  { answers, notices }: { answers: PortalAnswers; notices: Notices },
): void {
  portal.post(
    '/executors/:id/notice-period',
    {
      config,
      schema: {
        tags,
        summary: 'Announce maintenance or the removal of a node',
        description:
          'Stores the announcement and notifies the renters of pods on the node. A removal ends the pods at the announced time.',
        errors: {
          bad_request: 'the start or the length violates a rule; the message names the rule',
          conflict: 'there is already an open announcement',
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat is rejected with 409 and sends no notification.',
        params: NodeParams,
        body: SetNotice,
        response,
      },
    },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      return answers.one(await notices.set(caller, request.params.id, request.body));
    },
  );
  portal.delete(
    '/executors/:id/notice-period',
    {
      config,
      schema: {
        tags,
        summary: 'Withdraw an announcement',
        description:
          'Withdraws an announcement whose period has not started, and notifies the renters of pods on the node.',
        errors: {
          bad_request: 'there is no announcement, or its period has started',
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat is rejected and changes nothing.',
        params: NodeParams,
        response,
      },
    },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      return answers.one(await notices.cancel(caller, request.params.id));
    },
  );
}
