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
          'Returns the nodes of all providers with the pod on each GPU, and the reasons why a node cannot be rented. With `free=true` and an `offer` other than `rentable`, the list contains the nodes with free GPUs that cannot be rented.',
        errors,
        querystring: FleetQuery,
        response: { 200: FleetPage },
      },
    },
    ({ query }) => fleet.search(query),
  );
  api.get(
    '/operator/fleet/summary',
    {
      config,
      schema: {
        tags,
        summary: 'Count nodes and GPUs',
        description:
          'Returns the numbers of nodes and GPUs, in total and by the state of their offer.',
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
        description:
          'Returns providers with the numbers of their nodes, their unpaid earnings and their bans.',
        errors,
        querystring: ProvidersQuery,
        response: { 200: OperatorProviderPage },
      },
    },
    ({ query }) => fleet.providers({ ...query, banned: query.banned }),
  );
}
