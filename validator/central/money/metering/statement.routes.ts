/** GET /pods/{id}/statement for renters, and the portal's GET /billing, /billing/nodes and /billing/{hotkey} for providers. */

import { described } from '#shared/api/described.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { providerOf, userOf } from '../../platform/identity.ts';
import { createPortalAnswers, PageQuery, portalList } from '../../platform/portal-answer.ts';
import {
  BillingParams,
  BillingQuery,
  BillingRow,
  EarningsSum,
  NodeEarnings,
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
          'Returns the charges for one pod by period, even after the removal of the pod. The total less `unposted` equals the ledger.',
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
  const answers = createPortalAnswers({ clock });
  portal.get('/billing', { config, schema }, async (request) =>
    answers.page(await statements.billing(providerOf(request), request.query), request.query),
  );
  portal.get(
    '/billing/nodes',
    {
      config,
      schema: {
        tags: ['Portal'],
        summary: 'Sum the income by node',
        description:
          'Returns the income from each node since its first rental, the highest first, and the sum of all nodes. Use is posted once an hour; `unposted` has the use since then.',
        errors: { unauthorized: 'the token is missing, wrong or revoked' },
        querystring: PageQuery,
        response: {
          200: portalList(NodeEarnings).extend(
            described(
              { sum: EarningsSum, unposted: EarningsSum },
              {
                sum: 'Sum of the nodes on all pages.',
                unposted:
                  'Use on all nodes that is metered and not posted yet. `sum` does not have it.',
              },
            ),
          ),
        },
      },
    },
    async (request) => {
      const { query } = request;
      const { sum, unposted, ...found } = await statements.earnings(providerOf(request), query);
      return { ...answers.page(found, query), sum, unposted };
    },
  );
  portal.get(
    '/billing/:hotkey',
    { config, schema: { ...schema, params: BillingParams } },
    async (request) => {
      const { query, params } = request;
      return answers.page(
        await statements.billing(providerOf(request), query, params.hotkey),
        query,
      );
    },
  );
}
