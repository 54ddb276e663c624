/**
 * Sends a misspelt field to every route with a JSON body: routes that cost money or change data reject the field, other
 * routes ignore it.
 */
import { expect, it } from 'vitest';
import { readDocuments } from '../docs/interface-documents.ts';
import { createTestMarket } from '../fakes/scenes/market-fixture.ts';
import { bodyFieldsOf, DocumentedInterface, operationsOf } from './documentation.ts';

const REFUSING = [
  'PATCH /api/keys/{id}',
  'PATCH /api/pods/{id}',
  'POST /api/backup-configs',
  'POST /api/executors/rent-by-spec',
  'POST /api/executors/{executor_uuid}/rent',
  'POST /api/keys',
  'POST /api/operator/pods/{id}/refund',
  'POST /api/pods/{id}/reboot',
  'POST /api/pods/{pod_id}/backup',
  'POST /api/pods/{pod_uuid}/restore',
  'POST /api/users/me/transfer-credits',
  'PUT /api/pods/{id}',
  'PUT /api/users/me/auto-top-up',
];
const ID = '00000000-0000-4000-8000-000000000000';

const routes = (await readDocuments())
  .map((document) => DocumentedInterface.parse(document))
  .flatMap((document) =>
    operationsOf(document).map(({ name, operation, ...route }) => ({
      ...route,
      name,
      fields: bodyFieldsOf(document, operation),
    })),
  )
  .filter(({ fields }) => fields.length > 0);

it('a misspelt field is rejected by routes that cost money or change data, with the closest known name, and ignored by other routes', async () => {
  const market = await createTestMarket();
  try {
    const account = await market.renter();
    await market.ports.db.updateTable('accounts').set({ operator_since: 1 }).execute();
    const token = await market.logIn();
    const refusing: string[] = [];
    for (const { name, method, url, fields } of routes) {
      const [field = ''] = fields.toSorted((a, b) => b.length - a.length);
      const misspelt = field.slice(0, -1);
      const answer = await market.server.inject({
        method: method as 'POST',
        url: url.replaceAll(/\{[^}]+\}/g, ID),
        headers: url.startsWith('/portal') ? { authorization: `Bearer ${token}` } : account.session,
        payload: { [misspelt]: 1 },
      });
      const { validation_errors: issues = [] } = answer.json();
      const unknown = issues.filter(({ type }: { type: string }) => type === 'unknown_field');
      if (unknown.length === 0) continue;
      const message = `Unknown field; did you mean ${field}?`;
      expect(unknown).toEqual([{ field: `body.${misspelt}`, message, type: 'unknown_field' }]);
      refusing.push(name);
    }
    expect(routes.length).toBeGreaterThan(50);
    expect(refusing.toSorted()).toEqual(REFUSING);
  } finally {
    await market.close();
  }
});
