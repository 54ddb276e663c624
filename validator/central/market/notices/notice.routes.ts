/** /portal/executors/{id}/notice-period (contract 10). */
import type { HttpServer } from '#shared/http/server.ts';
import { actorOf, providerOf } from '../../platform/identity.ts';
import { NodeParams } from '../../providers/node.schemas.ts';
import type { PortalAnswers } from '../../providers/portal-answer.ts';
import { portalAnswer } from '../../providers/provider.schemas.ts';
import { NoticePeriod } from '../executors/notice-period.ts';
import { SetNotice } from './notice.schemas.ts';
import type { Notices } from './notice.service.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const response = { 200: portalAnswer(NoticePeriod) };

/** Registers them below /portal. */
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
