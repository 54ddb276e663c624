/** Routes on which renters create, list and cancel machine requests. Error responses are flat. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { MachineRequest, MachineRequestCreate } from './machine-request.schemas.ts';
import type { MachineRequests } from './machine-request.service.ts';

const tags = ['Machine requests'];
const config = { auth: 'user' } as const;
const response = { 200: MachineRequest };

export function registerMachineRequestRoutes(
  api: HttpServer,
  { requests, ...once }: OnceDeps & { requests: MachineRequests },
): void {
  api.get(
    '/machine-requests',
    {
      config,
      schema: {
        tags,
        summary: 'List machine requests',
        description: "Returns the account's requests for hardware that the market did not offer.",
        response: { 200: z.array(MachineRequest) },
      },
    },
    (request) => requests.list(userOf(request)),
  );
  api.post(
    '/machine-requests',
    {
      config: { ...config, once: 'machine-request' },
      schema: {
        tags,
        summary: 'Request hardware that is not on offer',
        description:
          'Stores a request that providers with verified nodes can read. When a provider adds such a node, the request is fulfilled and the renter is notified; nothing is rented automatically.',
        errors: { email_not_verified: 'the account has not confirmed its address' },
        body: MachineRequestCreate,
        response,
      },
    },
    async (request, reply) => {
      const effects = (tx: Db) => requests.createIn(tx, userOf(request), request.body);
      await answerOnce(once, { request, reply }, { schema: MachineRequest, effects });
      return reply;
    },
  );
  api.get(
    '/machine-requests/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read a machine request',
        description: 'Returns one machine request of the account.',
        errors: {
          not_found: 'no machine request has this id',
          forbidden: 'the request belongs to another account',
        },
        params: IdParams,
        response,
      },
    },
    (request) => requests.get(userOf(request), request.params.id),
  );
  api.delete(
    '/machine-requests/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Cancel a machine request',
        description: 'Cancels an open request and returns it.',
        errors: {
          bad_request: 'the request is already fulfilled or cancelled',
          not_found: 'no machine request has this id',
          forbidden: 'the request belongs to another account',
        },
        retry: 'Safe: a repeat is refused and changes nothing.',
        params: IdParams,
        response,
      },
    },
    (request) => requests.cancel(userOf(request), request.params.id),
  );
}
