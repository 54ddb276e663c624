/** Renting by a specification (contract 4.2). */
import type { HttpServer } from '#shared/http/server.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import type { MarketView } from '../executors/executor.service.ts';
import { callerOf } from '../pods/caller.ts';
import { RentBySpecRequest, RentBySpecResponse } from './rent-by-spec.schemas.ts';
import { type RentBySpecDeps, rentBySpecIn } from './rent-by-spec.service.ts';

export type RentBySpecRoutesDeps = RentBySpecDeps &
  OnceDeps & { view: MarketView; wake(executorId: string): void };

/** Registers it. */
export function registerRentBySpec(api: HttpServer, deps: RentBySpecRoutesDeps): void {
  api.post(
    '/executors/rent-by-spec',
    {
      config: { auth: 'user', once: 'rent-by-spec' },
      schema: {
        tags: ['Executors'],
        body: RentBySpecRequest,
        response: { 200: RentBySpecResponse },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      // Read before the transaction: whatever is taken away meanwhile is seen when it is tried.
      const market = (await deps.view.offers()).nodes.map(({ node }) => node);
      let rentedNode: string | null = null;
      const isRented = await answerOnce(
        deps,
        { request, reply },
        {
          schema: RentBySpecResponse,
          effects: async (tx) => {
            const asked = { ...caller, body: request.body };
            const rented = await rentBySpecIn(tx, deps, asked, market);
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
