/** Routes of nodes and providers below /operator. */
import type { HttpServer } from '#shared/http/server.ts';
import {
  FleetPage,
  FleetQuery,
  FleetSummary,
  OperatorProviderPage,
  ProvidersQuery,
} from './fleet.schemas.ts';
import type { Fleet } from './fleet.service.ts';

const tags = ['Operator'];
const config = { auth: 'operator' } as const;
const errors = { forbidden: "the account does not have the operator's role" };

export function registerFleet(api: HttpServer, fleet: Fleet): void {
  api.get(
    '/operator/fleet',
    {
      config,
      schema: {
        tags,
        summary: 'List nodes with their GPUs',
        description:
          'Returns nodes of every provider with the pod on each GPU, and why a node cannot be rented. `free=true` with an `offer` other than `rentable` lists GPUs that earn nothing.',
        errors,
        querystring: FleetQuery,
        response: { 200: FleetPage },
      },
    },
    ({ query }) => fleet.search({ ...query, offer: query.offer, free: query.free }),
  );
  api.get(
    '/operator/fleet/summary',
    {
      config,
      schema: {
        tags,
        summary: 'Count nodes and GPUs',
        description: 'Returns numbers of nodes and GPUs, in all and by whether they can be rented.',
        errors,
        response: { 200: FleetSummary },
      },
    },
    () => fleet.summary(),
  );
  api.get(
    '/operator/providers',
    {
      config,
      schema: {
        tags,
        summary: 'Search providers',
        description: 'Returns providers with their nodes, unpaid earnings and bans.',
        errors,
        querystring: ProvidersQuery,
        response: { 200: OperatorProviderPage },
      },
    },
    ({ query }) => fleet.providers({ ...query, banned: query.banned }),
  );
}
