/** Machine requests below /portal (contract 10). */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { actorOf, providerOf } from '../../platform/identity.ts';
import { NodeParams } from '../../providers/node.schemas.ts';
import type { PortalAnswers } from '../../providers/portal-answer.ts';
import { PageQuery, portalAnswer, portalList } from '../../providers/provider.schemas.ts';
import { MachineAdded, PortalRequest, RequestAggregate } from './portal-request.schemas.ts';
import type { PortalRequests } from './portal-request.service.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const one = { 200: portalAnswer(PortalRequest) };
const many = { 200: portalList(PortalRequest) };

/** Registers them. */
export function registerPortalRequestRoutes(
  portal: HttpServer,
  { answers, requests }: { answers: PortalAnswers; requests: PortalRequests },
): void {
  portal.get(
    '/machine-requests',
    {
      config,
      schema: {
        tags,
        querystring: PageQuery,
        response: { 200: z.union([portalList(PortalRequest), portalAnswer(RequestAggregate)]) },
      },
    },
    async (request) => {
      const found = await requests.list(providerOf(request), request.query);
      return 'tier' in found ? answers.one(found) : answers.page(found, request.query);
    },
  );
  portal.get(
    '/machine-requests/:id',
    { config, schema: { tags, params: NodeParams, response: one } },
    async (request) => answers.one(await requests.get(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/machine-requests',
    {
      config,
      schema: { tags, params: NodeParams, querystring: PageQuery, response: many },
    },
    async (request) => {
      const { params, query } = request;
      return answers.page(await requests.fittingTo(providerOf(request), params.id, query), query);
    },
  );
  portal.post(
    '/machine-added',
    { config, schema: { tags, body: MachineAdded, response: one } },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      return answers.one(await requests.fulfil(caller, request.body));
    },
  );
  portal.post(
    '/executors/:id/machine-added',
    { config, schema: { tags, params: NodeParams, body: MachineAdded, response: one } },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      const added = { ...request.body, executorId: request.params.id };
      return answers.one(await requests.fulfil(caller, added));
    },
  );
}
