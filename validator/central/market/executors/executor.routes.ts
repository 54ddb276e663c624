/** Public routes of nodes and machines. */
import type { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userIfAny, userOf } from '../../platform/identity.ts';
import {
  DefaultDockerImage,
  DefaultDockerImageQuery,
  DeploymentEstimateQuery,
  DeploymentEstimateResponse,
} from './deployment-estimate.schemas.ts';
import type { DeploymentEstimates } from './deployment-estimate.ts';
import {
  ExecutorCountResponse,
  ExecutorDetailResponse,
  ExecutorParams,
  ExplainedExecutorList,
  ReliabilityResponse,
  RentabilityResponse,
} from './executor.schemas.ts';
import type { Executors } from './executor.service.ts';
import { HardwareUtilization, type HardwareUtilizations } from './hardware-utilization.ts';
import {
  ExecutorStatsResponse,
  MachineCapacityResponse,
  MachineResponse,
  TotalCountExecutorResponse,
} from './market-overview.schemas.ts';
import type { MarketOverview } from './market-overview.ts';
import { ExecutorListQuery } from './node-filters.schemas.ts';
import { funnelText } from './node-filters.ts';

const tags = ['Executors'];
const config = { auth: 'none' } as const;

export type ExecutorRoutesDeps = {
  executors: Executors;
  overview: MarketOverview;
  utilization: HardwareUtilizations;
  estimates: DeploymentEstimates;
};

export function registerExecutorRoutes(api: HttpServer, deps: ExecutorRoutesDeps): void {
  const { executors, overview, utilization, estimates } = deps;
  api.get(
    '/executors',
    {
      config: { ...config, declaresSecurity: true },
      schema: {
        tags,
        summary: 'List nodes that can be rented',
        description:
          'Returns every node that has enough free GPUs for a rental and meets the filters, by price and then id. The header `X-Filter-Funnel` and `explain=true` report the number of nodes that each filter left. A credential adds bookmarks and machine requests.',
        errors: {
          validation_error: 'a filter is malformed, or `max_distance_mile` has no `lat` and `lon`',
        },
        querystring: ExecutorListQuery,
        response: { 200: z.union([z.array(ExecutorDetailResponse), ExplainedExecutorList]) },
      },
    },
    async (request, reply) => {
      const { json, funnel } = await executors.list(
        request.query,
        userIfAny(request)?.accountId ?? null,
      );
      void reply.header('X-Filter-Funnel', funnelText(funnel));
      return sendJson(reply, json);
    },
  );
  api.get(
    '/executors/:executor_uuid',
    {
      config,
      schema: {
        tags,
        summary: 'Read a node',
        description:
          'Returns a node that the market offers, also while all its GPUs are rented. A credential adds bookmarks and machine requests.',
        errors: { node_not_found: 'the market does not offer a node with this id' },
        params: ExecutorParams,
        response: { 200: ExecutorDetailResponse },
      },
    },
    (request) => executors.get(request.params.executor_uuid, userIfAny(request)?.accountId ?? null),
  );
  api.get(
    '/executors/count',
    {
      config,
      schema: {
        tags,
        summary: 'Count nodes that can be rented',
        description: 'Returns the number of nodes that can be rented now.',
        response: { 200: ExecutorCountResponse },
      },
    },
    async () => ({ count: await executors.count() }),
  );
  api.get(
    '/executors/total-count',
    {
      config,
      schema: {
        tags,
        summary: 'Count all nodes',
        description: 'Returns the number of nodes, including rented nodes.',
        response: { 200: TotalCountExecutorResponse },
      },
    },
    async () => ({ total_count: await executors.totalCount() }),
  );
  api.get(
    '/executors/stats',
    {
      config,
      schema: {
        tags,
        summary: 'Read numbers and prices by GPU type',
        description:
          'Returns, for each GPU type, the numbers of all and of free nodes and GPUs, and their prices.',
        response: { 200: z.array(ExecutorStatsResponse) },
      },
    },
    () => overview.stats(),
  );
  api.get(
    '/executors/default-docker-image',
    {
      config,
      schema: {
        tags,
        summary: 'List default images for a GPU type',
        description:
          'Returns images that work on nodes with this GPU, the preferred image first. Clients pick the template with the same image and tag.',
        errors: { node_not_found: 'no node has such a GPU' },
        querystring: DefaultDockerImageQuery,
        response: { 200: z.array(DefaultDockerImage) },
      },
    },
    (request) => overview.defaultImages(request.query.gpu_model),
  );
  api.get(
    '/executors/deployment-estimate',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Estimate how long a launch takes',
        description:
          'Returns the expected seconds until a pod of this template runs on this node, and the balance that the rental requires.',
        errors: {
          node_not_found: 'no node has this id',
          template_not_found: 'there is no such template, or it is private to another account',
        },
        querystring: DeploymentEstimateQuery,
        response: { 200: DeploymentEstimateResponse },
      },
    },
    (request) => estimates(userOf(request).accountId, request.query),
  );
  api.get(
    '/executors/:executor_uuid/rentability',
    {
      config,
      schema: {
        tags,
        summary: 'Check whether a node can be rented',
        description: 'Returns the reasons for which a rental would be refused now.',
        errors: { node_not_found: 'no node has this id' },
        params: ExecutorParams,
        response: { 200: RentabilityResponse },
      },
    },
    (request) => executors.rentability(request.params.executor_uuid),
  );
  api.get(
    '/executors/:executor_uuid/reliability',
    {
      config,
      schema: {
        tags,
        summary: 'Read the reliability of a node',
        description:
          'Returns the score of the last 30 days with the figures behind it: reachable time from the checks of validators, launches and interruptions from rentals.',
        errors: { node_not_found: 'no node has this id' },
        params: ExecutorParams,
        response: { 200: ReliabilityResponse },
      },
    },
    (request) => executors.reliability(request.params.executor_uuid),
  );
  api.get(
    '/executors/:executor_uuid/hardware-utilization',
    {
      config,
      schema: {
        tags,
        summary: 'Read the load of a node',
        description:
          'Returns the last measurement of processors, memory, disk, network and GPUs. `stale` marks a measurement that is older than a minute.',
        errors: { node_not_found: 'no node has this id, or it was never measured' },
        params: ExecutorParams,
        response: { 200: HardwareUtilization },
      },
    },
    (request) => utilization(request.params.executor_uuid),
  );
  api.get(
    '/machines',
    {
      config,
      schema: {
        tags,
        summary: 'List GPU types',
        description:
          'Returns every GPU type with its reference price, the number of GPUs, and the fraction that is rented.',
        response: { 200: z.array(MachineResponse) },
      },
    },
    () => overview.machines(),
  );
  api.get(
    '/machines/capacity',
    {
      config,
      schema: {
        tags,
        summary: 'Read capacity by number of GPUs',
        description:
          'Returns, for each GPU type and 1, 2, 4 or 8 GPUs, the number of nodes and the lowest price.',
        response: { 200: z.array(MachineCapacityResponse) },
      },
    },
    () => overview.capacity(),
  );
}

/** Sends text that is already JSON. */
function sendJson(reply: FastifyReply, json: Buffer | Readable): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json);
}
