/** Machine requests below /portal (contract 10). */
import { z } from 'zod';
import { type Clock, naiveUtc } from '#shared/clock.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { actorOf, providerOf } from '../auth/identity.ts';
import { NodeParams, portalAnswer, portalList } from '../providers/provider.schemas.ts';
import {
  MachineAdded,
  PortalRequest,
  RequestAggregate,
  RequestPageQuery,
} from './portal-request.schemas.ts';
import type { PortalRequests, RequestPage } from './portal-request.service.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const one = { 200: portalAnswer(PortalRequest) };
const many = { 200: portalList(PortalRequest) };

/** Registers them. */
export function registerPortalRequestRoutes(
  portal: HttpServer,
  { clock, requests }: { clock: Clock; requests: PortalRequests },
): void {
  const answer = <Data>(data: Data) => ({
    success: true as const,
    data,
    timestamp: naiveUtc(clock.now()),
  });
  const paged = ({ items, total }: RequestPage, { page, limit }: RequestPageQuery) => {
    const pagination = { page, limit, total, total_pages: Math.ceil(total / limit) };
    return { ...answer(items), total, page, limit, pagination };
  };
  portal.get(
    '/machine-requests',
    {
      config,
      schema: {
        tags,
        querystring: RequestPageQuery,
        response: { 200: z.union([portalList(PortalRequest), portalAnswer(RequestAggregate)]) },
      },
    },
    async (request) => {
      const found = await requests.list(providerOf(request), request.query);
      return 'tier' in found ? answer(found) : paged(found, request.query);
    },
  );
  portal.get(
    '/machine-requests/:id',
    { config, schema: { tags, params: NodeParams, response: one } },
    async (request) => answer(await requests.get(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/machine-requests',
    {
      config,
      schema: { tags, params: NodeParams, querystring: RequestPageQuery, response: many },
    },
    async (request) => {
      const { params, query } = request;
      return paged(await requests.fittingTo(providerOf(request), params.id, query), query);
    },
  );
  portal.post(
    '/machine-added',
    { config, schema: { tags, body: MachineAdded, response: one } },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      return answer(await requests.fulfil(caller, request.body));
    },
  );
  portal.post(
    '/executors/:id/machine-added',
    { config, schema: { tags, params: NodeParams, body: MachineAdded, response: one } },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      const added = { ...request.body, executorId: request.params.id };
      return answer(await requests.fulfil(caller, added));
    },
  );
}
