/** Portal routes on which providers read and fulfil machine requests. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import {
  MachineAdded,
  PortalRequest,
  RequestAggregate,
} from '../market/machine-requests/machine-request.schemas.ts';
import type { PortalRequests } from '../market/machine-requests/portal-request.service.ts';
import { actorOf, providerOf } from '../platform/identity.ts';
import {
  PageQuery,
  type PortalAnswers,
  portalAnswer,
  portalList,
} from '../platform/portal-answer.ts';
import { NodeParams } from './node.schemas.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const one = { 200: portalAnswer(PortalRequest) };
const many = { 200: portalList(PortalRequest) };

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
        summary: 'List machine requests of renters',
        description:
          'Returns single requests to providers with a verified node, and only counts to other providers.',
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
    {
      config,
      schema: {
        tags,
        summary: 'Read a machine request',
        description: 'Returns one machine request without the identity of the renter.',
        errors: {
          not_found: 'no request has this id',
          forbidden: 'the provider has no verified node',
        },
        params: NodeParams,
        response: one,
      },
    },
    async (request) => answers.one(await requests.get(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/machine-requests',
    {
      config,
      schema: {
        tags,
        summary: 'List machine requests that a node can fulfil',
        description: 'Returns open requests that this node could fulfil.',
        errors: {
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider, or the provider has no verified node',
        },
        params: NodeParams,
        querystring: PageQuery,
        response: many,
      },
    },
    async (request) => {
      const { params, query } = request;
      return answers.page(await requests.matching(providerOf(request), params.id, query), query);
    },
  );
  portal.post(
    '/machine-added',
    {
      config,
      schema: {
        tags,
        summary: 'Fulfil a machine request',
        description:
          'Marks the request as fulfilled by a verified node of the provider and notifies the renter. It does not rent the node.',
        errors: {
          not_found: 'no request has this id',
          conflict: 'the request is already fulfilled',
          bad_request: 'the node does not meet the request, or cannot be rented now',
          forbidden: 'the node belongs to another provider, or the provider has no verified node',
        },
        retry: 'Safe: a repeat is rejected and sends no notification.',
        body: MachineAdded,
        response: one,
      },
    },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      return answers.one(await requests.fulfil(caller, request.body));
    },
  );
  portal.post(
    '/executors/:id/machine-added',
    {
      config,
      schema: {
        tags,
        summary: 'Fulfil a machine request with this node',
        description:
          'Marks the request as fulfilled by this verified node and notifies the renter. It does not rent the node.',
        errors: {
          not_found: 'no request has this id',
          conflict: 'the request is already fulfilled',
          bad_request: 'the node does not meet the request, or cannot be rented now',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat is rejected and sends no notification.',
        params: NodeParams,
        body: MachineAdded,
        response: one,
      },
    },
    async (request) => {
      const caller = { provider: providerOf(request), actor: actorOf(request) };
      const added = { ...request.body, executorId: request.params.id };
      return answers.one(await requests.fulfil(caller, added));
    },
  );
}
