import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

const ED25519 = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDRKgu/qxYhH5a4JzthEsnCwLpUH5FQQijuGcrzMZPkc';
const RSA =
  'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDs8a2eUCDZRfZ/b4B9OSVrO9DOWIYlW7teRUpY6llV43OfKGDAoSisdVyBS9fVTI95jqNQiHYlFZb6UYykc/YWiOK96J2hLs40JS5vO7AuOjHmFb+iyiwK8YmNr+v6390+MFPG5UHPHF2fBE63fd4YnW5f0wa9r5bXViWZH1vwpHPJPVpRY3NGtmHuG09/xyLeute9WMmAMMJuZDty6T63sfy471sXxBU62DwxANVt3Yi0D2cMeDNZv9qGVv9DEL/4w6mJ+wYBe6xCSGmbuVVvlKOPsAz+eHeHuQdb8rZ0amSdlR8fX/a6gP0Nl+gs1qs22gTHqJeiWtf/cAWOsg1D';
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

let central: TestCentral;
beforeEach(async () => {
  central = await createTestCentral();
});
afterEach(() => central.close());

it('creates, lists, changes and deletes keys', async () => {
  const { key: headers, id: userId } = await central.signUp();
  const body = { name: ' laptop ', public_key: `${ED25519} me@laptop\n` };
  const created = await central.call('POST', '/ssh-keys', { headers, body });
  expect(created.status).toBe(200);
  expect(created.body).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    name: 'laptop',
    public_key: `${ED25519} me@laptop`,
    user_id: userId,
    created_at: '2027-01-15T08:00:00.000000',
    updated_at: '2027-01-15T08:00:00.000000',
  });
  const path = `/ssh-keys/${created.body.id}`;
  expect((await central.call('GET', path, { headers })).body).toEqual(created.body);
  expect((await central.call('GET', '/ssh-keys/', { headers })).body).toEqual([created.body]);

  await central.clock.advance(1_500);
  const changed = await central.call('PUT', path, {
    headers,
    body: { name: 'desk', public_key: RSA },
  });
  expect(changed.body).toMatchObject({
    id: created.body.id,
    name: 'desk',
    public_key: RSA,
    created_at: created.body.created_at,
    updated_at: '2027-01-15T08:00:01.500000',
  });
  const removed = await central.call('DELETE', path, { headers });
  expect([removed.status, removed.body]).toEqual([200, changed.body]);
  expect((await central.call('GET', '/ssh-keys', { headers })).body).toEqual([]);
  expect((await central.call('DELETE', path, { headers })).status).toBe(404);
});

it('returns the existing row for the same key', async () => {
  const { key: headers } = await central.signUp();
  const post = (name: string, public_key: string) =>
    central.call('POST', '/ssh-keys', { headers, body: { name, public_key } });
  const first = await post('one', `${ED25519} a`);
  const [again, both] = await Promise.all([post('two', `${ED25519} b`), post('three', ED25519)]);
  expect([again.status, again.body]).toEqual([200, first.body]);
  expect(both.body).toEqual(first.body);
  const other = await post('rsa', RSA);
  const path = `/ssh-keys/${other.body.id}`;
  const clash = await central.call('PUT', path, {
    headers,
    body: { name: 'x', public_key: ED25519 },
  });
  expect([clash.status, clash.body.error.code]).toEqual([409, 'conflict']);
  const stranger = await central.signUp();
  const theirs = await central.call('POST', '/ssh-keys', {
    headers: stranger.key,
    body: { name: 'same key', public_key: ED25519 },
  });
  expect(theirs.body.id).not.toBe(first.body.id);
});

it('rejects an invalid public key, naming the field', async () => {
  const { key: headers } = await central.signUp();
  const post = (body: object) => central.call('POST', '/ssh-keys', { headers, body });
  for (const public_key of ['', 'x', `${ED25519}\n${RSA}`, `no-pty ${ED25519}`, 5, null]) {
    const { status, body } = await post({ name: 'x', public_key });
    expect([public_key, status, body.validation_errors[0].field]).toEqual([
      public_key,
      422,
      'body.public_key',
    ]);
  }
  expect((await post({ name: '  ', public_key: ED25519 })).status).toBe(422);
  expect((await post({ public_key: ED25519 })).body.validation_errors).toEqual([
    { field: 'body.name', message: 'Field required', type: 'missing' },
  ]);
});

it('answers 403 for a key of another account and 404 for an unknown key, without the key', async () => {
  const { key: headers } = await central.signUp();
  const stranger = await central.signUp();
  const { body: row } = await central.call('POST', '/ssh-keys', {
    headers,
    body: { name: 'x', public_key: ED25519 },
  });
  const body = { name: 'y', public_key: RSA };
  for (const method of ['GET', 'DELETE', 'PUT'] as const) {
    const sent = method === 'PUT' ? { headers: stranger.key, body } : { headers: stranger.key };
    const foreign = await central.call(method, `/ssh-keys/${row.id}`, sent);
    expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
    const absent = await central.call(method, `/ssh-keys/${UNKNOWN_ID}`, sent);
    expect([absent.status, absent.body.error.code]).toEqual([404, 'not_found']);
  }
  expect((await central.call('GET', '/ssh-keys', { headers })).body).toEqual([row]);
});
