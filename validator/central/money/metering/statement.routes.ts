/** GET /pods/{id}/statement for renters, and the portal's GET /billing and /billing/{hotkey} for providers. */

import type { HttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { providerOf, userOf } from '../../platform/identity.ts';
import { portalList } from '../../platform/portal-answer.ts';
import {
  BillingParams,
  BillingQuery,
  BillingRow,
  PodStatement,
  StatementParams,
} from './statement.schemas.ts';
import type { Statements } from './statement.service.ts';

export function registerStatement(api: HttpServer, statements: Statements): void {
  api.get(
    '/pods/:id/statement',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Pods'],
        summary: 'Read the cost of a pod',
        description:
          'Returns the charges for one pod by period, even after the removal of the pod. The total equals the ledger.',
        errors: { pod_not_found: 'the account never had such a pod' },
        params: StatementParams,
        response: { 200: PodStatement },
      },
    },
    (request) => statements.statement(userOf(request), request.params.id),
  );
}

export function registerBilling(
  portal: HttpServer,
  { statements, clock }: { statements: Statements; clock: Clock },
): void {
  const config = { auth: 'portal' } as const;
  const schema = {
    tags: ['Portal'],
    summary: 'List the income from pods',
    description:
      'Returns the payments of renters, the fee and the net amount, with one entry for each pod and day (UTC), newest first. Entries of other providers contain neither pod nor amounts.',
    errors: { unauthorized: 'the token is missing, wrong or revoked' },
    querystring: BillingQuery,
    response: { 200: portalList(BillingRow) },
  };
  const paged = (
    { page, limit }: BillingQuery,
    { items, total }: { items: BillingRow[]; total: number },
  ) => ({
    success: true as const,
    data: items,
    timestamp: naiveUtc(clock.now()),
    total,
    page,
    limit,
    pagination: { page, limit, total, total_pages: Math.ceil(total / limit) },
  });
  portal.get('/billing', { config, schema }, async (request) =>
    paged(request.query, await statements.billing(providerOf(request), request.query)),
  );
  portal.get(
    '/billing/:hotkey',
    { config, schema: { ...schema, params: BillingParams } },
    async (request) => {
      const { query, params } = request;
      return paged(query, await statements.billing(providerOf(request), query, params.hotkey));
    },
  );
}
