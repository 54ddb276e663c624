import { afterEach, beforeEach, expect, it } from 'vitest';
import type { PodPutInput } from '#shared/api/agent/pod.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const PASSWORD = 'dckr_pat_S3CRET';
const LOGIN = { name: 'hub', docker_username: 'ann', docker_password: PASSWORD };

let market: TestMarket;
let account: TestAccount;
beforeEach(async () => {
  market = await createTestMarket();
  account = await market.renter();
});
afterEach(() => market.close());

function call(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
  headers: Record<string, string> = account.key,
) {
  return market.call(method, path, body === undefined ? { headers } : { headers, body });
}

async function templateWith(credentialId: string, change: object = {}) {
  const body = {
    name: 'x',
    docker_image: 'ghcr.io/ann/private',
    docker_credential_id: credentialId,
  };
  return call('POST', '/templates', { ...body, ...change });
}

it('creates, lists, changes and deletes credentials without showing the password', async () => {
  const created = await call('POST', '/docker-credentials', LOGIN);
  expect([created.status, created.body]).toEqual([
    200,
    {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'hub',
      docker_username: 'ann',
      created_at: '2027-01-15T08:00:00.000000',
      updated_at: '2027-01-15T08:00:00.000000',
    },
  ]);
  const path = `/docker-credentials/${created.body.id}`;
  expect((await call('GET', path)).body).toEqual(created.body);
  // A session is accepted in place of an API key.
  const listed = await call('GET', '/docker-credentials', undefined, account.session);
  expect(listed.body).toEqual([created.body]);
  const changed = await call('PUT', path, { docker_password: 'another', name: null });
  expect(changed.body).toEqual(created.body);
  const rows = await market.ports.db.selectFrom('docker_credentials').selectAll().execute();
  expect(JSON.stringify(rows)).not.toMatch(/S3CRET|another/);
  expect((await call('DELETE', path)).body).toEqual(created.body);
  expect((await call('GET', '/docker-credentials')).body).toEqual([]);
  expect((await call('DELETE', path)).body.error.code).toBe('not_found');
});

it('rejects invalid input, naming the field without repeating the value', async () => {
  for (const [wrong, field] of [
    [{ docker_password: '' }, 'body.docker_password'],
    [{ docker_password: null }, 'body.docker_password'],
    [{ docker_password: 'S3CRET\nx' }, 'body.docker_password'],
    [{ docker_username: ' ' }, 'body.docker_username'],
    [{ name: 'x'.repeat(101) }, 'body.name'],
  ] as const) {
    const { status, body } = await call('POST', '/docker-credentials', { ...LOGIN, ...wrong });
    expect([status, body.validation_errors[0].field]).toEqual([422, field]);
    expect(JSON.stringify(body)).not.toContain('S3CRET');
  }
});

it('does not reveal credentials to another account', async () => {
  const stranger = await market.renter();
  const { body: row } = await call('POST', '/docker-credentials', LOGIN);
  const path = `/docker-credentials/${row.id}`;
  for (const method of ['GET', 'PUT', 'DELETE'] as const) {
    const body = method === 'PUT' ? { name: 'y' } : undefined;
    const foreign = await call(method, path, body, stranger.key);
    expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
  }
  const theirs = { name: 'x', docker_image: 'evil.example/x', docker_credential_id: row.id };
  const taken = await call('POST', '/templates', theirs, stranger.key);
  expect([taken.status, taken.body.error.code]).toEqual([400, 'template_invalid']);
});

it('sends the login for the image’s registry to the node that pulls the image', async () => {
  const { body: credential } = await call('POST', '/docker-credentials', LOGIN);
  const { body: template } = await templateWith(credential.id);
  expect(template.docker_credential_id).toBe(credential.id);
  const node = await market.verifiedNode();
  const { body: pod } = await market.rent(account, node.id, { template_id: template.id });
  await market.sync();
  const sent: PodPutInput | undefined = market.agents.host(node.id).specs.get(pod.id);
  expect(sent?.registry_auth).toEqual({ host: 'ghcr.io', username: 'ann', password: PASSWORD });
  const stored = await market.ports.db.selectFrom('pods').selectAll().execute();
  expect(JSON.stringify([pod, stored])).not.toContain(PASSWORD);
});

it("sends a login only with its owner's pods, also if another account copies its public template", async () => {
  const { body: credential } = await call('POST', '/docker-credentials', LOGIN);
  const { body: template } = await templateWith(credential.id, { is_private: false });
  const stranger = await market.renter();
  const as = (method: 'GET' | 'PUT', path: string, body?: object) =>
    call(method, path, body, stranger.key);
  const listed = (await as('GET', '/templates')).body;
  const seen = (await as('GET', `/templates/${template.id}`)).body;
  expect(JSON.stringify([listed, seen])).not.toContain(credential.id);

  const node = await market.verifiedNode();
  const { body: pod } = await market.rent(stranger, node.id, { template_id: template.id });
  await market.sync();
  const host = market.agents.host(node.id);
  expect(host.specs.get(pod.id)).toMatchObject({
    image: { reference: expect.stringMatching(/^ghcr.io.ann.private/) },
  });

  const image = { docker_image: 'evil.example/x', docker_image_tag: '1' };
  const named = { ...image, docker_credential_id: credential.id };
  const refused = await as('PUT', `/pods/${pod.id}`, named);
  expect([refused.status, refused.body.error.code]).toEqual([400, 'template_invalid']);
  const copied = await as('PUT', `/pods/${pod.id}`, image);
  expect(copied).toMatchObject({ status: 200, body: { docker_credential_id: null } });
  await market.sync();
  const own = await as('PUT', `/templates/${copied.body.id}`, named);
  expect(own.body.error.code).toBe('template_invalid');
  await market.sync();
  const again = await as('PUT', `/pods/${pod.id}`, named);
  expect(again.body.error.code).toBe('template_invalid');

  // Simulates a pod row of an older version that names the credential.
  await market.ports.db
    .updateTable('pods')
    .set({ docker_credential_id: credential.id })
    .where('id', '=', pod.id)
    .execute();
  expect(
    (await as('PUT', `/pods/${pod.id}/switch-template`, { template_id: template.id })).status,
  ).toBe(200);
  await market.sync();
  expect(JSON.stringify([...host.specs.values()])).not.toContain(PASSWORD);
});

it('rejects rentals after the login is deleted, but allows the template to be changed', async () => {
  const { body: credential } = await call('POST', '/docker-credentials', LOGIN);
  const { body: template } = await templateWith(credential.id);
  await call('DELETE', `/docker-credentials/${credential.id}`);
  const node = await market.verifiedNode();
  const refused = await market.rent(account, node.id, { template_id: template.id });
  expect(refused.body.error.code).toBe('template_invalid');
  const path = `/templates/${template.id}`;
  expect((await call('PUT', path, { ...template, name: 'y' })).status).toBe(200);
  const unknown = await call('PUT', path, { docker_credential_id: UNKNOWN_ID });
  expect(unknown.body.error.code).toBe('template_invalid');
});
