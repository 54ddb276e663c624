import { afterEach, expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/random.ts';
import { createReplayCache, createRequestVerifier, MAX_SKEW_MS } from './request-verifier.ts';
import { createSignedFetch } from './signed-fetch.ts';
import { createSigner, verifySr25519 } from './sr25519.ts';

const AUDIENCE = '3f9f41a6-0001-4000-8000-000000000001';
const START_MS = 1_795_218_600_000;
const signer = createSigner(new Uint8Array(32).fill(7));

const servers: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/** A server that verifies requests, and a client whose clock is `aheadMs` ahead. */
async function setUp(aheadMs = 0) {
  const clock = createManualClock(START_MS);
  const failures: string[] = [];
  const calls: unknown[] = [];
  const verifier = createRequestVerifier({
    clock,
    audience: AUDIENCE,
    keys: [{ hotkey: signer.hotkey, roles: ['validator-control'] }],
    replay: createReplayCache(2 * MAX_SKEW_MS),
    verify: verifySr25519,
    onFailure: (reason) => failures.push(reason),
  });
  const log = createLog({ name: 'test', level: 'silent' });
  const server = createHttpServer({
    log,
    clock,
    random: systemRandom,
    bodyLimitBytes: 1000,
    async verifyBody(request) {
      const pending = verifier.checkHeaders(request, ['validator-control']);
      verifier.checkBody(pending, request.rawBody ?? new Uint8Array());
    },
  });
  server.all('/v1/echo/:name', async (request) => {
    calls.push(request.body ?? null);
    return { query: request.query };
  });
  servers.push(server);
  const send = createSignedFetch({
    baseUrl: await server.listen({ host: '127.0.0.1', port: 0 }),
    audience: AUDIENCE,
    signer,
    clock: createManualClock(START_MS + aheadMs),
    random: systemRandom,
  });
  return { send, failures, calls, clock };
}

it('signs path, query and body as they are on the wire', async () => {
  const { send, calls } = await setUp();
  const path = "/v1/echo/a%20b?z=ü&a=1+2&a='&empty=";
  const response = await send({ method: 'POST', path, body: '{"t":"ü"}' });
  expect(await response.json()).toEqual({ query: { z: 'ü', a: ['1 2', "'"] } });
  expect((await send({ method: 'GET', path })).status).toBe(200);
  expect(calls).toEqual([{ t: 'ü' }, null]);
});

it('retries once with the server’s time if its clock is off or the server has restarted', async () => {
  for (const aheadMs of [-1, -MAX_SKEW_MS - 1_000, MAX_SKEW_MS + 1_000]) {
    const { send, failures, calls } = await setUp(aheadMs);
    const response = await send({ method: 'POST', path: '/v1/echo/x', body: '{}' });
    expect(failures).toHaveLength(1);
    expect([response.status, calls.length]).toEqual([200, 1]);
  }
});

it('does not retry if the server’s time is too different', async () => {
  const { send, failures } = await setUp(-2 * MAX_SKEW_MS - 1);
  expect((await send({ method: 'GET', path: '/v1/echo/x' })).status).toBe(401);
  expect(failures).toEqual(['skew']);
});

it('returns other errors and rejects on abort', async () => {
  const { send, failures } = await setUp();
  expect((await send({ method: 'GET', path: '/nothing' })).status).toBe(404);
  expect(failures).toEqual([]);
  const aborted = send({ method: 'GET', path: '/v1/echo/x', signal: AbortSignal.abort() });
  await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
});
