/** Portal routes of nodes. */
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
      schema: {
        tags,
        summary: 'Add a node',
        description:
          'Stores the node. A validator then checks it. Once the node is verified, it can be rented, and `status` changes from `queued` to `available`.',
        errors: {
          bad_request:
            'the GPU type is unknown, the price is outside the allowed range, or the address is not allowed; the message names the allowed values',
          conflict: 'a node with this address and port already exists',
        },
        body: AddNode,
        response: node,
      },
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
      schema: {
        tags,
        summary: 'List nodes',
        description:
          "Returns the provider's nodes. Nodes of other providers are returned with public columns only.",
        querystring: NodeListQuery,
        response: { 200: portalList(PortalNode) },
      },
    },
    async (request) => {
      const { query } = request;
      return answers.page(await nodes.page(providerOf(request), query), query);
    },
  );
  portal.get(
    '/executors/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read a node',
        description: 'Returns one node with the reasons that prevent its rental.',
        errors: {
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        params,
        response: node,
      },
    },
    async (request) => answers.one(await nodes.get(providerOf(request), request.params.id)),
  );
  portal.delete(
    '/executors/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Remove a node',
        description:
          'Removes a node without pods immediately. If the node has pods, announce a permanent removal instead.',
        errors: {
          bad_request: 'the node has pods, or volumes of renters are being saved on it',
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params,
        response: node,
      },
    },
    async (request) => answers.one(await nodes.remove(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/verification',
    {
      config,
      schema: {
        tags,
        summary: 'Read the last verdict on a node',
        description:
          'Returns each check with the measured and the required value, and the remedy for each failed check.',
        errors: {
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        params,
        response: { 200: portalAnswer(Verification) },
      },
    },
    async (request) =>
      answers.one(await nodes.verification(providerOf(request), request.params.id)),
  );
  portal.get(
    '/executors/:id/pods',
    {
      config,
      schema: {
        tags,
        summary: 'List pods on a node',
        description: 'Returns the pods of renters on this node, with a pseudonym for each renter.',
        errors: {
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        params,
        querystring: PageQuery,
        response: { 200: portalList(NodePod) },
      },
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
    '/executors/:id/pause',
    {
      config,
      schema: {
        tags,
        summary: 'Pause a node',
        description:
          'Prevents new rentals of the node: they are rejected with 409 `node_paused_by_provider`. Pods on the node continue.',
        errors: {
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a paused node remains paused.',
        params,
        response: node,
      },
    },
    async (request) => answers.one(await nodes.pause(providerOf(request), request.params.id)),
  );
  portal.post(
    '/executors/:id/resume',
    {
      config,
      schema: {
        tags,
        summary: 'Resume a paused node',
        description: 'Offers the node for new rentals again.',
        errors: {
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
          conflict: 'the announced removal of the node has started',
        },
        retry: 'Safe: a node that is offered remains offered.',
        params,
        response: node,
      },
    },
    async (request) => answers.one(await nodes.resume(providerOf(request), request.params.id)),
  );
  portal.post(
    '/executors/:id/update-price',
    {
      config,
      schema: {
        tags,
        summary: 'Change the price of a node',
        description:
          'Changes the price for new rentals immediately. The prices of running pods do not change.',
        errors: {
          bad_request: 'the price is outside the allowed range',
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat stores the same price again.',
        params,
        body: UpdatePrice,
        response: node,
      },
    },
    async (request) => {
      const { params, body } = request;
      return answers.one(await nodes.updatePrice(providerOf(request), params.id, body));
    },
  );
  portal.post(
    '/executors/:id/update-gpu',
    {
      config,
      schema: {
        tags,
        summary: 'Change the GPU type or the number of GPUs of a node',
        description:
          'Changes the GPU type or the number of GPUs that the provider states. The next verdict checks the new values.',
        errors: {
          bad_request: 'the GPU type is unknown, or pods use more GPUs than the new number',
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat stores the same values again.',
        params,
        body: UpdateGpu,
        response: node,
      },
    },
    async (request) => {
      const { params, body } = request;
      return answers.one(await nodes.updateGpu(providerOf(request), params.id, body));
    },
  );
  portal.post(
    '/executors/:id/min-gpu-count-for-rental',
    {
      config,
      schema: {
        tags,
        summary: 'Allow rentals of a part of a node',
        description: 'Sets the smallest number of GPUs that a rental may take.',
        errors: {
          bad_request: 'the number exceeds the number of GPUs of the node',
          gpu_split_not_allowed: 'the host cannot separate the disks of several pods',
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat stores the same number again.',
        params,
        body: SetMinimum,
        response: node,
      },
    },
    async (request) => {
      const { min_gpu_count_for_rental: minimum } = request.body;
      return answers.one(await nodes.setMinimum(providerOf(request), request.params.id, minimum));
    },
  );
  portal.delete(
    '/executors/:id/min-gpu-count-for-rental',
    {
      config,
      schema: {
        tags,
        summary: 'Allow only rentals of the whole node',
        description: 'Clears the minimum, so that a rental takes all GPUs of the node.',
        errors: {
          bad_request: 'pods use a part of the node',
          node_not_found: 'no node has this id',
          forbidden: 'the node belongs to another provider',
        },
        retry: 'Safe: a repeat changes nothing.',
        params,
        response: node,
      },
    },
    async (request) =>
      answers.one(await nodes.clearMinimum(providerOf(request), request.params.id)),
  );
}

function registerLocation(portal: HttpServer, { answers, nodes }: NodeRoutesDeps): void {
  const response = { 200: portalAnswer(NodeLocation) };
  const path = '/executors/:id/location';
  const errors = {
    node_not_found: 'no node has this id, or it was removed',
    forbidden: 'the node belongs to another provider',
  } as const;
  portal.get(
    path,
    {
      config,
      schema: {
        tags,
        summary: 'Read the place of a node',
        description:
          'Returns the place that the provider entered, the evidence (address table and measured round trips), and the result of the comparison with this evidence.',
        errors,
        params,
        response,
      },
    },
    async (request) => answers.one(await nodes.location(providerOf(request), request.params.id)),
  );
  portal.post(
    path,
    {
      config,
      schema: {
        tags,
        summary: 'Enter the place of a node',
        description:
          'Replaces the place of the node and compares the new place with the evidence. Unless the evidence contradicts the place, renters see it immediately, and filters by country, region and distance use it. The comparison is repeated with every verdict of a validator.',
        errors,
        retry: 'Safe: a repeat stores the same place again.',
        params,
        body: EnterPlace,
        response,
      },
    },
    async (request) => {
      const { params, body } = request;
      return answers.one(await nodes.setLocation(providerOf(request), params.id, body));
    },
  );
  portal.delete(
    path,
    {
      config,
      schema: {
        tags,
        summary: 'Remove the place of a node',
        description:
          'Removes the place that the provider entered. The node then matches no filter by country, region or distance.',
        errors,
        retry: 'Safe: a repeat changes nothing.',
        params,
        response,
      },
    },
    async (request) =>
      answers.one(await nodes.setLocation(providerOf(request), request.params.id, null)),
  );
}
