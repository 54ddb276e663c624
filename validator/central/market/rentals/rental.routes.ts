/** Routes that rent a node by id or by specification, and the old route that ends the only rental of a node. */
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { callerOf } from '../../platform/identity.ts';
import { ExecutorParams } from '../executors/executor.schemas.ts';
import type { MarketView } from '../executors/executor.service.ts';
import { PodDeletedResponse } from '../pods/pod.schemas.ts';
import type { Pods } from '../pods/pod.service.ts';
import { type RentBySpecDeps, rentBySpecIn } from './rent-by-spec.service.ts';
import {
  RENT_BY_SPEC_FIELD_NAMES,
  RENT_FIELD_NAMES,
  RentBySpecQuery,
  RentBySpecRequest,
  RentBySpecResponse,
  RentExecutorRequest,
  RentExecutorResponse,
} from './rental.schemas.ts';
import { rentIn } from './rental.service.ts';

const tags = ['Executors'];
const config = { auth: 'user' } as const;

export type RentalRoutesDeps = RentBySpecDeps &
  OnceDeps & {
    pods: Pods;
    view: MarketView;
    wake(executorId: string): void;
  };

export function registerRentalRoutes(api: HttpServer, deps: RentalRoutesDeps): void {
  const { pods } = deps;
  api.post(
    '/executors/:executor_uuid/rent',
    {
      config: { ...config, once: 'rent', fieldNames: RENT_FIELD_NAMES },
      schema: {
        tags,
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
        },
      );
      if (isRented) deps.wake(executorId);
      return reply;
    },
  );
  api.delete(
    '/executors/:executor_uuid/rent',
    { config, schema: { tags, params: ExecutorParams, response: { 200: PodDeletedResponse } } },
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
        querystring: RentBySpecQuery,
        body: RentBySpecRequest,
        response: { 200: RentBySpecResponse },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      // Read before the transaction: a node that was rented since is detected by the attempt to rent it.
      const market = (await deps.view.offers()).nodes.map(({ node }) => node);
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
            const rented = await rentBySpecIn(tx, deps, rental, market);
            rentedNode = rented.pod === null ? null : rented.selected_executor.id;
            return rented;
          },
        },
      );
      if (isRented && rentedNode !== null) deps.wake(rentedNode);
      return reply;
    },
  );
}
