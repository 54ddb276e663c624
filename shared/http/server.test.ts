import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { OverloadError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createHttpServer } from './server.ts';

const ID = '00000000-0000-4000-8000-000000000000';

function systemError({ code, syscall }: { code: string; syscall: string }): Error {
  const error = new Error(`${code}: ${syscall} '/secret/path'`);
  return Object.assign(error, { code, syscall, path: '/secret/path' });
}

function createServer(options: { requestTimeoutMs?: number } = {}) {
  const server = createHttpServer({
    log: createLog({ name: 'test', level: 'silent' }),
    clock: createManualClock(),
    random: systemRandom,
    bodyLimitBytes: 1000,
    ...options,
    profileOf: (path) => (path.startsWith('/volumes') ? 'flat' : 'envelope'),
  });
  const schema = {
    params: z.object({ id: z.uuid() }),
    body: z.object({ n: z.int(), pod_name: z.string() }),
    response: { 200: z.object({ ok: z.boolean() }) },
  };
  server.post('/a/:id', { schema }, async () => ({ ok: true }));
  server.get('/boom', async () => {
    throw new Error('secret at /etc/shadow');
  });
  server.get('/overload', async () => {
    throw new OverloadError('No connection is free');
  });
  server.get('/store', async (request) => {
    throw systemError(request.query as { code: string; syscall: string });
  });
  server.get('/volumes', async () => {
    throw new Error('secret');
  });
  return server;
}

const JSON_TYPE = { 'content-type': 'application/json' };

it.each([
  ['path id that is no uuid', 'POST', '/a/x', '{"n":1,"pod_name":"x"}', 422, 'validation_error'],
  ['missing member', 'POST', `/a/${ID}`, '{"n":1}', 422, 'validation_error'],
  ['malformed JSON', 'POST', `/a/${ID}`, '{', 400, 'bad_request'],
  ['empty body', 'POST', `/a/${ID}`, '', 422, 'validation_error'],
  ['oversized body', 'POST', `/a/${ID}`, `{"pod_name":"${'x'.repeat(2000)}"}`, 413, 'client_error'],
  ['malformed path', 'GET', '/%zz', undefined, 400, 'bad_request'],
  ['unknown path', 'GET', '/nope', undefined, 404, 'not_found'],
  ['unknown method', 'GET', `/a/${ID}`, undefined, 405, 'method_not_allowed'],
  ['handler that throws', 'GET', '/boom', undefined, 500, 'internal_error'],
] as const)(
  'rejects a request with the envelope: %s',
  async (_, method, url, payload, status, code) => {
    const response = await createServer().inject({
      method,
      url,
      ...(payload === undefined ? {} : { payload, headers: JSON_TYPE }),
    });
    const body = response.json();
    expect(response.statusCode).toBe(status);
    expect(body.error).toMatchObject({ code, hint: expect.stringMatching(/.{10}/) });
    expect(body).toMatchObject({
      success: false,
      message: body.error.message,
      status_code: status,
      error_id: status === 500 ? body.request_id : null,
      request_id: response.headers['x-request-id'],
      timestamp: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$/),
      api_context: null,
    });
    expect(response.body).not.toMatch(/secret|\/etc|\.ts:/);
  },
);

it.each([
  ['application/json', {}, 200],
  ['Application/JSON; charset=UTF-8', {}, 200],
  ['application/vnd.podwright+json ; charset="utf-8"', {}, 200],
  ['application/json', { 'content-encoding': 'identity' }, 200],
  ['application/jsonp', {}, 415],
  ['application/json5', {}, 415],
  ['application/json; charset=utf-16', {}, 415],
  ['application/json; charset="iso-8859-1"', {}, 415],
  ['application/json', { 'content-encoding': 'gzip' }, 415],
])('accepts only uncompressed JSON in UTF-8: %s %j', async (type, others, status) => {
  const response = await createServer().inject({
    method: 'POST',
    url: `/a/${ID}`,
    payload: '{"n":1,"pod_name":"x"}',
    headers: { 'content-type': type, ...others },
  });
  expect(response.statusCode).toBe(status);
  if (status !== 200) expect(response.json().error.code).toBe('client_error');
});

it('responds to an overload with 503, a hint and Retry-After', async () => {
  const response = await createServer().inject({ url: '/overload' });
  expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '5']);
  expect(response.json().error).toMatchObject({
    code: 'upstream_unavailable',
    message: 'No connection is free',
    hint: expect.stringContaining('Idempotency-Key'),
  });
});

it.each([
  ['ENOSPC', 'write', 503, 'The storage is full'],
  ['EDQUOT', 'open', 503, 'The storage is full'],
  ['EROFS', 'mkdir', 503, 'The storage is read-only'],
  ['EACCES', 'open', 503, 'The storage is not accessible'],
  ['EACCES', 'connect', 500, 'An unexpected error occurred'],
  ['EIO', 'read', 500, 'An unexpected error occurred'],
])('responds to %s of %s with %d: %s', async (code, syscall, status, message) => {
  const url = `/store?code=${code}&syscall=${syscall}`;
  const response = await createServer().inject({ url });
  expect([response.statusCode, response.json().error.message]).toEqual([status, message]);
  expect(response.headers['retry-after']).toBe(status === 503 ? '60' : undefined);
  expect(response.json().error.code === 'storage_full').toBe(message.endsWith('full'));
});

it('names every invalid field by its path', async () => {
  const response = await createServer().inject({
    method: 'POST',
    url: `/a/${ID}`,
    payload: { n: 'one' },
  });
  expect(response.json().validation_errors).toEqual([
    { field: 'body.n', message: expect.stringContaining('number'), type: 'invalid' },
    { field: 'body.pod_name', message: 'Field required', type: 'missing' },
  ]);
});

it('names the invalid fields of path, body, query and headers in one response', async () => {
  const server = createServer();
  const schema = {
    params: z.object({ id: z.uuid() }),
    body: z.object({ n: z.int(), pod_name: z.string() }),
    querystring: z.object({ limit: z.coerce.number().int().max(9), name: z.string() }),
    headers: z.object({ 'x-count': z.string().regex(/^[0-9]+$/, 'Not a number') }),
  };
  server.post('/all/:id', { schema }, async () => ({ ok: true }));
  const refusedFields = async (id: string, body: object) => {
    const url = `/all/${id}?limit=99`;
    const headers = { 'x-count': 'many' };
    const response = await server.inject({ method: 'POST', url, payload: body, headers });
    expect(response.statusCode).toBe(422);
    const issues = response.json().validation_errors as { field: string }[];
    return issues.map(({ field }) => field);
  };
  const later = ['query.limit', 'query.name', 'header.x-count'];
  expect(await refusedFields('x', {})).toEqual(['path.id', 'body.n', 'body.pod_name', ...later]);
  expect(await refusedFields(ID, { n: 'one' })).toEqual(['body.n', 'body.pod_name', ...later]);
  expect(await refusedFields(ID, { n: 1, pod_name: 'x' })).toEqual(later);
});

it('lists the allowed methods with a 405 and treats /x and /x/ as the same path', async () => {
  const server = createServer();
  const refused = await server.inject({ method: 'DELETE', url: '/boom/' });
  expect(refused.headers['allow']).toBe('GET, HEAD');
  const payload = { n: 1, pod_name: 'x' };
  const answered = await server.inject({ method: 'POST', url: `/a/${ID}/`, payload });
  expect(answered.json()).toEqual({ ok: true });
});

it('keeps a valid request id and replaces any other', async () => {
  const server = createServer();
  const idFor = async (given: string) => {
    const headers = { 'x-request-id': given };
    return (await server.inject({ url: '/nope', headers })).headers['x-request-id'];
  };
  expect(await idFor('mine:1234')).toBe('mine:1234');
  for (const bad of ['short', 'x'.repeat(65), 'with space', 'ünïcode12']) {
    expect(await idFor(bad)).not.toBe(bad);
  }
});

it('treats a blank parameter as absent', async () => {
  const server = createServer();
  const querystring = z.object({ n: z.coerce.number().optional() });
  server.get('/q', { schema: { querystring } }, async (request) => ({
    n: request.query.n ?? null,
  }));
  for (const blank of ['', '%20', '+%09']) {
    expect((await server.inject(`/q?n=${blank}&m=1`)).json()).toEqual({ n: null });
  }
});

const Parameters = z.object({
  size: z.preprocess((text) => (/^\d+$/.test(String(text)) ? Number(text) : text), z.int().max(9)),
  lat: z.preprocess(Number, z.number().min(-90).max(90)).optional(),
  follow: z.stringbool().optional(),
  view: z.literal('all').optional(),
  pod: z.uuid().nullish(),
  since: z
    .string()
    .refine((text) => text === 'ever', 'Not a time')
    .optional(),
  name: z.string().max(5).optional(),
  ticket: z.string().max(5).optional(),
});

it.each([
  ['size=1e2', 'query.size', '"1e2" is not a whole number in decimal digits up to 9'],
  ['size=10', 'query.size', '"10" is not a whole number in decimal digits up to 9'],
  ['size=1&size=2', 'query.size', 'Given 2 times; give it once'],
  ['lat=91', 'query.lat', '"91" is not a number in decimal notation from -90 to 90'],
  ['view=x', 'query.view', '"x" is not "all"'],
  ['pod=%22%0a', 'query.pod', String.raw`"\"\n" is not a UUID`],
  ['since=never', 'query.since', 'Not a time: "never"'],
  ['name=%F0%9F%98%80toolong', 'query.name', '"\u{1f600}toolong" is not text of 0 to 5 characters'],
  ['ticket=a-secret', 'query.ticket', 'The given value is not text of 0 to 5 characters'],
  [
    `name=${'x'.repeat(5_000)}`,
    'query.name',
    `"${'x'.repeat(64)}"… (5000 characters) is not text of 0 to 5 characters`,
  ],
  [
    'follow=maybe',
    'query.follow',
    '"maybe" is not true, 1, yes, on, y, enabled, false, 0, no, off, n or disabled',
  ],
])('names the invalid value and what is allowed: %.30s', async (query, field, message) => {
  const server = createServer();
  server.get('/q/:id', { schema: { querystring: Parameters } }, async () => ({}));
  const given = query.startsWith('size') ? query : `size=1&${query}`;
  const { statusCode, body } = await server.inject(`/q/1?${given}`);
  expect([statusCode, JSON.parse(body).validation_errors]).toEqual([
    422,
    [{ field, message, type: 'invalid' }],
  ]);
});

it('names invalid ids in paths', async () => {
  const url = '/a/x';
  const payload = { n: 1, pod_name: 'x' };
  const { validation_errors: errors } = (
    await createServer().inject({ method: 'POST', url, payload })
  ).json();
  expect(errors).toEqual([{ field: 'path.id', message: '"x" is not a UUID', type: 'invalid' }]);
});

it('rejects a request that does not arrive in time, except on routes with slow bodies', async () => {
  const server = createServer({ requestTimeoutMs: 200 });
  server.post('/slow', { config: { slowBody: true } }, async () => ({ ok: true }));
  let lateRequests = 0;
  server.server.on('clientError', () => {
    lateRequests += 1;
  });
  const { port } = new URL(await server.listen({ host: '127.0.0.1', port: 0 }));
  const open = (path: string) => {
    const sent = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`${sent}Connection: close\r\nContent-Length: 2\r\n\r\n{`);
    const answer = new Promise<string>((resolve) => {
      socket.on('data', (chunk) => resolve(chunk.toString().slice(0, 12)));
    });
    return { socket, answer };
  };
  const [usual, slow] = [open(`/a/${ID}`), open('/slow')];
  expect(await usual.answer).toBe('HTTP/1.1 408');
  await eventually('both requests were late', () => lateRequests === 2);
  slow.socket.write('}');
  expect(await slow.answer).toBe('HTTP/1.1 200');
  await server.close();
});

it.each([
  ['no HTTP at all', 'hello\r\n\r\n', 400, 'bad_request'],
  [
    'two lengths',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    400,
    'bad_request',
  ],
  [
    'too many headers',
    `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`,
    431,
    'client_error',
  ],
  ['no host', 'GET /nope HTTP/1.1\r\nConnection: close\r\n\r\n', 404, 'not_found'],
])('rejects an unreadable request with the envelope: %s', async (_, sent, status, code) => {
  const server = createServer();
  const { port } = new URL(await server.listen({ host: '127.0.0.1', port: 0 }));
  const answer = await new Promise<string>((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), '127.0.0.1', () => socket.write(sent));
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
  await server.close();
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  const { error, request_id: requestId } = JSON.parse(body);
  expect(error).toMatchObject({ code, hint: expect.stringMatching(/\w+ \w+/) });
  expect(head.toLowerCase()).toContain(`x-request-id: ${requestId}`.toLowerCase());
});

it('responds with flat error bodies on routes that use them', async () => {
  const response = await createServer().inject({ url: '/volumes' });
  expect(response.statusCode).toBe(500);
  expect(response.json()).toEqual({ success: false, message: 'An unexpected error occurred' });
});

it('names the first invalid field in the message of a flat body', async () => {
  const server = createServer();
  const body = z.object({ name: z.string(), size: z.int() });
  server.post('/volumes', { schema: { body } }, async () => ({}));
  const response = await server.inject({ method: 'POST', url: '/volumes', payload: { name: 'x' } });
  expect([response.statusCode, response.json()]).toEqual([
    422,
    { success: false, message: 'Request validation failed: body.size: Field required' },
  ]);
});
