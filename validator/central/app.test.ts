import { Writable } from 'node:stream';
import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestCentral } from '../../test/fakes/scenes/central-fixture.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

it('returns every kind of error in the envelope with its request id', async () => {
  const central = await createTestCentral();
  const { key } = await central.signUp();
  const failures = [
    ['GET', '/api/nowhere', {}, undefined, 404, 'not_found'],
    ['GET', '/nowhere', {}, undefined, 404, 'not_found'],
    ['PATCH', '/api/users/me', key, undefined, 405, 'method_not_allowed'],
    ['GET', '/api/users/me', {}, undefined, 401, 'unauthorized'],
    ['GET', '/api/ssh-keys/x', key, undefined, 422, 'validation_error'],
    ['POST', '/api/ssh-keys', { ...key, ...JSON_TYPE }, '{', 400, 'bad_request'],
    ['POST', '/api/ssh-keys', { ...key, ...JSON_TYPE }, '', 422, 'validation_error'],
    ['POST', '/api/ssh-keys', { ...key, 'content-type': 'text/xml' }, '<a/>', 415, 'client_error'],
    [
      'POST',
      '/api/ssh-keys',
      { ...key, ...JSON_TYPE },
      `"${'x'.repeat(1024 * 1024)}"`,
      413,
      'client_error',
    ],
    ['POST', '/api/keys', { ...key, ...JSON_TYPE }, '{"name":"x"}', 403, 'forbidden'],
  ] as const;
  for (const [method, url, headers, payload, status, code] of failures) {
    const sent = payload === undefined ? { headers } : { headers, payload };
    const response = await central.server.inject({ method, url, ...sent });
    const body = response.json();
    expect([url, response.statusCode, body.error.code]).toEqual([url, status, code]);
    expect(body).toMatchObject({
      success: false,
      status_code: status,
      request_id: response.headers['x-request-id'],
      error: { hint: expect.stringMatching(/\w+/), request_id: body.request_id },
    });
  }
  await central.close();
});

it('is not ready while another version has the schema, and stays alive', async () => {
  const clock = createManualClock();
  const central = await createTestCentral({ clock });
  const get = async (url: string) =>
    (await central.server.inject({ method: 'GET', url })).statusCode;
  expect([await get('/healthz'), await get('/readyz')]).toEqual([200, 200]);
  const { db } = central.ports;
  await db.updateTable('meta').set({ value: '1' }).where('name', '=', 'schema').execute();
  await clock.advance(1_000);
  expect([await get('/healthz'), await get('/readyz')]).toEqual([200, 503]);
  await central.close();
});

it('is not ready while it drains, and still serves', async () => {
  const clock = createManualClock();
  const central = await createTestCentral({ clock });
  const get = async (url: string) =>
    (await central.server.inject({ method: 'GET', url })).statusCode;
  expect(await get('/readyz')).toBe(200);
  central.central.drain();
  await clock.advance(1_000);
  expect([await get('/readyz'), await get('/healthz'), await get('/api/machines')]).toEqual([
    503, 200, 200,
  ]);
  await central.close();
});

it('returns 500 without the cause when the database fails', async () => {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const central = await createTestCentral({
    log: createLog({ name: 'test', level: 'info' }, sink),
  });
  const { key } = await central.signUp();
  await central.ports.db.schema.dropTable('ssh_keys').execute();
  const { status, body } = await central.call('GET', '/ssh-keys', { headers: key });
  expect([status, body.error.code, body.error_id]).toEqual([
    500,
    'internal_error',
    body.request_id,
  ]);
  expect(JSON.stringify(body)).not.toMatch(/ssh_keys|sqlite|select/i);
  expect(lines.join('')).toContain(body.request_id);
  await central.close();
});

it('returns the same response for /x and /x/, without a redirect', async () => {
  const central = await createTestCentral();
  const { session } = await central.signUp();
  for (const path of ['', '/version', '/users/me', '/keys', '/keys/scopes', '/templates']) {
    const [plain, slashed] = await Promise.all([
      central.call('GET', path, { headers: session }),
      central.call('GET', `${path}/`, { headers: session }),
    ]);
    expect([path, plain.status, plain.body]).toEqual([path, 200, slashed.body]);
  }
  await central.close();
});

it('writes no secret to the log', async () => {
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const central = await createTestCentral({
    log: createLog({ name: 'test', level: 'trace' }, sink),
  });
  const { key, session, apiKey, token, email, password } = await central.signUp();
  const wrong = { email, password: 'a wrong secret' };
  await central.call('POST', '/users/login', { body: wrong });
  await central.call('POST', '/users', { body: { email, password } });
  await central.call('PUT', '/users/me', {
    headers: session,
    body: { current_password: password, new_password: 'a newer secret' },
  });
  await central.call('GET', '/keys', { headers: session });
  await central.call('POST', '/templates', {
    headers: key,
    body: { name: 'x', docker_image: 'ubuntu', environment: { A: 'env secret' } },
  });
  await central.ports.db.schema.alterTable('accounts').renameTo('gone').execute();
  expect((await central.call('GET', '/users/me', { headers: key })).status).toBe(500);
  const failed = await central.call('POST', '/users', {
    body: { email: 'b@example.com', password },
  });
  expect(failed.status).toBe(500);
  const log = lines.join('');
  expect(log).toContain('request failed');
  for (const secret of [
    apiKey,
    token,
    password,
    'a wrong secret',
    'a newer secret',
    'env secret',
  ]) {
    expect(log).not.toContain(secret);
  }
  await central.close();
});
