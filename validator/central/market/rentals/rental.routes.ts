/** Routes that rent a node by id or by specification, and the older route that ends the only rental of a node. */
import type { HttpServer } from '#shared/http/server.ts';
import type { RecordRefusal } from '../../accounts/api-keys/budget-refusal.service.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { callerOf } from '../../platform/identity.ts';
import { ExecutorParams } from '../executors/executor.schemas.ts';
import { PodDeletedResponse } from '../pods/pod.schemas.ts';
import type { Pods } from '../pods/pod.service.ts';
import {
  RENT_BY_SPEC_FIELD_NAMES,
  RENT_FIELD_NAMES,
  RentBySpecQuery,
  RentBySpecRequest,
  RentBySpecResponse,
} from './rent-by-spec.schemas.ts';
import { type RentBySpecDeps, rentBySpecIn } from './rent-by-spec.service.ts';
import { RentExecutorRequest, RentExecutorResponse } from './rental.schemas.ts';
import { rentIn } from './rental.service.ts';
import type { SpecSearch } from './spec-search.ts';

const tags = ['Executors'];
const config = { auth: 'user' } as const;

export type RentalRoutesDeps = RentBySpecDeps &
  OnceDeps & {
    pods: Pods;
    searchSpec: SpecSearch;
    wake(executorId: string): void;
    recordRefusal: RecordRefusal;
  };

export function registerRentalRoutes(api: HttpServer, deps: RentalRoutesDeps): void {
  const { pods, recordRefusal } = deps;
  api.post(
    '/executors/:executor_uuid/rent',
    {
      config: { ...config, once: 'rent', fieldNames: RENT_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Rent a node',
        description:
          'Creates a pod on this node and reserves 15 minutes of its price; the cost is charged by the second while the pod runs. The pod is PENDING in the answer; poll the pod, or follow its events, until it is RUNNING. A misspelt field is rejected, and the error names the field that was probably meant.',
        errors: {
          insufficient_balance:
            'the balance is below 15 minutes of the price; the message states both amounts',
          API_KEY_BUDGET_EXCEEDED: 'a budget of the API key does not cover 15 minutes of the price',
          email_not_verified: 'the account has not confirmed its address',
          node_not_found: 'no node has this id',
          node_rent_in_progress: 'another rental of these GPUs is in progress',
          node_not_verified: 'the last verdict does not allow rentals',
          node_unavailable: 'the GPUs are rented, or the provider is removing the node',
          node_paused_by_provider: 'the provider accepts no new rentals',
          provider_banned: 'the provider is banned',
          gpu_count_invalid: 'the node does not offer this number of GPUs',
          gpu_split_not_allowed: 'only the whole node can be rented',
          template_not_found: 'there is no such template, or it is private to another account',
          template_invalid: 'the template cannot be used, or there is none',
          ttl_invalid: '`termination_hours` is not between 1 and 720',
          volume_not_found: 'no volume has this id',
          conflict: 'another pod has the volume, or another node is saving it',
          forbidden: 'the volume or the backup belongs to another account',
          bad_request:
            'there is no SSH key, a secret does not exist, encryption was requested, or two fields exclude each other',
        },
        params: ExecutorParams,
        body: RentExecutorRequest,
        response: { 200: RentExecutorResponse },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const executorId = request.params.executor_uuid;
      const caller = callerOf(request);
      const isRented = await answerOnce(
        deps,
        { request, reply },
        {
          schema: RentExecutorResponse,
          effects: (tx) => rentIn(tx, deps, { ...caller, executorId, body }),
          onRefused: (error) => recordRefusal(request, error),
        },
      );
      if (isRented) deps.wake(executorId);
      return reply;
    },
  );
  api.delete(
    '/executors/:executor_uuid/rent',
    {
      config: { ...config, urgent: true },
      schema: {
        tags,
        summary: 'End the only rental on a node',
        description:
          "Removes the caller's pod on this node, as `DELETE /pods/{id}` does. Older clients use this route.",
        errors: {
          bad_request: 'the caller has several pods on the node; the message names them',
          pod_not_found: 'the caller has no pod on the node',
        },
        retry: 'Safe: a repeat returns 400 or 404 and changes nothing.',
        params: ExecutorParams,
        response: { 200: PodDeletedResponse },
      },
    },
    async (request) => ({
      ...(await pods.removeOnly(callerOf(request), request.params.executor_uuid)),
      success: true as const,
    }),
  );
  api.post(
    '/executors/rent-by-spec',
    {
      config: { ...config, once: 'rent-by-spec', fieldNames: RENT_BY_SPEC_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Rent the cheapest node that meets a specification',
        description:
          'Chooses among all nodes that can be rented: cheapest per GPU and hour, then fastest download, then highest reliability. A node that does not report a figure does not meet a minimum of this figure. With `dry_run` nothing is rented.',
        errors: {
          no_executor_matches_spec:
            'no node is left; the answer contains the constraint that left none, the number of nodes that each constraint left, and the nearest offer',
          node_rent_in_progress: 'other renters have just rented every matching node',
          insufficient_balance: 'the balance is below 15 minutes of the price',
          API_KEY_BUDGET_EXCEEDED: 'a budget of the API key does not cover 15 minutes of the price',
          email_not_verified: 'the account has not confirmed its address',
          template_not_found: 'there is no such template, or it is private to another account',
          template_invalid: 'the template cannot be used, or there is none',
          ttl_invalid: '`termination_hours` is not between 1 and 720',
          volume_not_found: 'no volume has this id',
          conflict: 'another pod has the volume, or another node is saving it',
          forbidden: 'the volume or the backup belongs to another account',
          bad_request:
            'there is no SSH key, a secret does not exist, encryption was requested, or two fields exclude each other',
        },
        querystring: RentBySpecQuery,
        body: RentBySpecRequest,
        response: { 200: RentBySpecResponse },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      // Read before the transaction. A node that was rented since then is detected by the attempt to rent it.
      const match = await deps.searchSpec(request.body);
      let rentedNode: string | null = null;
      const isRented = await answerOnce(
        deps,
        { request, reply },
        {
          schema: RentBySpecResponse,
          effects: async (tx) => {
            const { body, query } = request;
            const isExplained = body.explain === true || query.explain === true;
            const rental = { ...caller, body, isExplained };
            const rented = await rentBySpecIn(tx, deps, rental, match);
            rentedNode = rented.pod === null ? null : rented.selected_executor.id;
            return rented;
          },
          onRefused: (error) => recordRefusal(request, error),
        },
      );
      if (isRented && rentedNode !== null) deps.wake(rentedNode);
      return reply;
    },
  );
}
