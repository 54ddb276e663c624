/** Portal routes for nodes, and for their synchronisation with the central miner server. */
import type { HttpServer } from '#shared/http/server.ts';
import { EnterPlace, NodeLocation } from '../market/places/place.schemas.ts';
import type { Db } from '../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../platform/idempotency/once.ts';
import { providerOf } from '../platform/identity.ts';
import {
  PageQuery,
  type PortalAnswers,
  portalAnswer,
  portalList,
} from '../platform/portal-answer.ts';
import type { CentralMinerSync } from './central-miner.service.ts';
import {
  AddNode,
  NodeListQuery,
  NodeParams,
  NodePod,
  PortalNode,
  SetMinimum,
  UpdateGpu,
  UpdatePrice,
  Verification,
} from './node.schemas.ts';
import type { Nodes } from './node.service.ts';
import { SyncAnswer } from './provider.schemas.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
const node = { 200: portalAnswer(PortalNode) };
const params = NodeParams;

export type NodeRoutesDeps = OnceDeps & { answers: PortalAnswers; nodes: Nodes };

export function registerNodeRoutes(portal: HttpServer, deps: NodeRoutesDeps): void {
  const { answers, nodes } = deps;
  portal.post(
    '/executors',
    {
      config: { ...config, once: 'node-addition' },
      schema: { tags, body: AddNode, response: node },
    },
    async (request, reply) => {
      const caller = providerOf(request);
      const schema = portalAnswer(PortalNode);
      const effects = async (tx: Db) => answers.one(await nodes.addIn(tx, caller, request.body));
      await answerOnce(deps, { request, reply }, { schema, effects });
      return reply;
    },
  );
  portal.get(
    '/executors',
    {
      config,
      schema: { tags, querystring: NodeListQuery, response: { 200: portalList(PortalNode) } },
    },
    async (request) => {
      const { query } = request;
      return answers.page(await nodes.page(providerOf(request), query), query);
    },
  );
  portal.get(
    '/executors/:id',
    { config, schema: { tags, params, response: node } },
    async (request) => answers.one(await nodes.get(providerOf(request), request.params.id)),
  );
  portal.delete(
    '/executors/:id',
    { config, schema: { tags, params, response: node } },
    async (request) => answers.one(await nodes.remove(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/verification',
    { config, schema: { tags, params, response: { 200: portalAnswer(Verification) } } },
    async (request) =>
      answers.one(await nodes.verification(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/pods',
    {
      config,
      schema: { tags, params, querystring: PageQuery, response: { 200: portalList(NodePod) } },
    },
    async (request) => {
      const { query } = request;
      return answers.page(await nodes.pods(providerOf(request), request.params.id, query), query);
    },
  );
  registerChanges(portal, deps);
  registerLocation(portal, deps);
}

function registerChanges(portal: HttpServer, { answers, nodes }: NodeRoutesDeps): void {
  portal.post(
    '/executors/:id/update-price',
    { config, schema: { tags, params, body: UpdatePrice, response: node } },
    async (request) => {
      const { params, body } = request;
      return answers.one(await nodes.updatePrice(providerOf(request), params.id, body));
    },
  );
  portal.post(
    '/executors/:id/update-gpu',
    { config, schema: { tags, params, body: UpdateGpu, response: node } },
    async (request) => {
      const { params, body } = request;
      return answers.one(await nodes.updateGpu(providerOf(request), params.id, body));
    },
  );
  portal.post(
    '/executors/:id/min-gpu-count-for-rental',
    { config, schema: { tags, params, body: SetMinimum, response: node } },
    async (request) => {
      const { min_gpu_count_for_rental: minimum } = request.body;
      return answers.one(await nodes.setMinimum(providerOf(request), request.params.id, minimum));
    },
  );
  portal.delete(
    '/executors/:id/min-gpu-count-for-rental',
    { config, schema: { tags, params, response: node } },
    async (request) =>
      answers.one(await nodes.clearMinimum(providerOf(request), request.params.id)),
  );
}

function registerLocation(portal: HttpServer, { answers, nodes }: NodeRoutesDeps): void {
  const response = { 200: portalAnswer(NodeLocation) };
  const path = '/executors/:id/location';
  portal.get(path, { config, schema: { tags, params, response } }, async (request) =>
    answers.one(await nodes.location(providerOf(request), request.params.id)),
  );
  portal.post(
    path,
    { config, schema: { tags, params, body: EnterPlace, response } },
    async (request) => {
      const { params, body } = request;
      return answers.one(await nodes.setLocation(providerOf(request), params.id, body));
    },
  );
  portal.delete(path, { config, schema: { tags, params, response } }, async (request) =>
    answers.one(await nodes.setLocation(providerOf(request), request.params.id, null)),
  );
}

const sync = { tags, response: { 200: portalAnswer(SyncAnswer) } };

export type CentralMinerRoutesDeps = { answers: PortalAnswers; minerSync: CentralMinerSync };

export function registerCentralMinerRoutes(portal: HttpServer, deps: CentralMinerRoutesDeps): void {
  const { answers, minerSync } = deps;
  for (const name of ['miner', 'provider']) {
    portal.post(
      `/executors/sync-executor-central-${name}`,
      { config, schema: sync },
      async (request) => answers.one(await minerSync.pull(providerOf(request))),
    );
  }
  portal.post('/executors/sync-executor-miner-portal', { config, schema: sync }, async (request) =>
    answers.one(await minerSync.push(providerOf(request))),
  );
}
