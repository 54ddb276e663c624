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
          'Stores the announcement and notifies the renters on the node. A removal ends their pods at the announced time.',
        errors: {
          bad_request: 'begin and length break a rule; the message names it',
          conflict: 'an announcement is open already',
          node_not_found: 'there is no such node',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat is refused with 409 and sends no notification.',
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
        description: 'Removes an announcement that has not begun and notifies the renters.',
        errors: {
          bad_request: 'there is no announcement, or it has begun',
          node_not_found: 'there is no such node',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat is refused and changes nothing.',
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
