/** Public routes of nodes and machines. */
import type { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userIfAny, userOf } from '../../platform/identity.ts';
import type { DeploymentEstimates } from './deployment-estimate.ts';
import {
  DefaultDockerImage,
  DefaultDockerImageQuery,
  DeploymentEstimateQuery,
  DeploymentEstimateResponse,
  ExecutorCountResponse,
  ExecutorDetailResponse,
  ExecutorListQuery,
  ExecutorParams,
  ExecutorStatsResponse,
  ExplainedExecutorList,
  MachineCapacityResponse,
  MachineResponse,
  RentabilityResponse,
  TotalCountExecutorResponse,
} from './executor.schemas.ts';
import type { Executors } from './executor.service.ts';
import { HardwareUtilization, type HardwareUtilizations } from './hardware-utilization.ts';
import type { MarketOverview } from './market-overview.ts';
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
    '/executors/count',
    { config, schema: { tags, response: { 200: ExecutorCountResponse } } },
    async () => ({ count: await executors.count() }),
  );
  api.get(
    '/executors/total-count',
    { config, schema: { tags, response: { 200: TotalCountExecutorResponse } } },
    async () => ({ total_count: await executors.totalCount() }),
  );
  api.get(
    '/executors/stats',
    { config, schema: { tags, response: { 200: z.array(ExecutorStatsResponse) } } },
    () => overview.stats(),
  );
  api.get(
    '/executors/default-docker-image',
    {
      config,
      schema: {
        tags,
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
        querystring: DeploymentEstimateQuery,
        response: { 200: DeploymentEstimateResponse },
      },
    },
    (request) => estimates(userOf(request).accountId, request.query),
  );
  api.get(
    '/executors/:executor_uuid/rentability',
    { config, schema: { tags, params: ExecutorParams, response: { 200: RentabilityResponse } } },
    (request) => executors.rentability(request.params.executor_uuid),
  );
  api.get(
    '/executors/:executor_uuid/hardware-utilization',
    { config, schema: { tags, params: ExecutorParams, response: { 200: HardwareUtilization } } },
    (request) => utilization(request.params.executor_uuid),
  );
  api.get(
    '/machines',
    { config, schema: { tags, response: { 200: z.array(MachineResponse) } } },
    () => overview.machines(),
  );
  api.get(
    '/machines/capacity',
    { config, schema: { tags, response: { 200: z.array(MachineCapacityResponse) } } },
    () => overview.capacity(),
  );
}

/** Sends text that is JSON already. */
function sendJson(reply: FastifyReply, json: Buffer | Readable): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json);
}
