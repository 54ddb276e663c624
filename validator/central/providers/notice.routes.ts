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
    { config, schema: { tags, params: NodeParams, body: SetNotice, response } },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      return answers.one(await notices.set(caller, request.params.id, request.body));
    },
  );
  portal.delete(
    '/executors/:id/notice-period',
    { config, schema: { tags, params: NodeParams, response } },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      return answers.one(await notices.cancel(caller, request.params.id));
    },
  );
}
