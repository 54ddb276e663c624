/** Spans of a request and its outgoing calls, as a collector receives them by OTLP. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type OtlpReceiver, startOtlpReceiver } from '../../test/fakes/external/otlp-receiver.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createHttpServer, type HttpServer } from '../http/server.ts';
import { systemClock } from '../runtime/clock.ts';
import { ApiError } from '../runtime/errors.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/random.ts';
import { createSignedFetch } from '../signing/signed-fetch.ts';
import { createSigner } from '../signing/sr25519.ts';
import { createOtlpTracer, formatTraceparent, parseTraceparent } from './otlp-tracer.ts';
import { currentTraceparent, inSpan, isTracingConfigured, startTracing } from './tracing.ts';

const clock = createManualClock();
const lines: { msg: string }[] = [];
const log = createLog(
  { name: 'test', level: 'info' },
  { write: (line: string) => void lines.push(JSON.parse(line)) },
);
const servers: HttpServer[] = [];
const FOREIGN = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const ID = '3f9f41a6-0001-4000-8000-000000000001';
let receiver: OtlpReceiver;
let front: string;

beforeAll(async () => {
  receiver = await startOtlpReceiver();
  const agent = await serve(true, async () => {
    await inSpan({ name: 'engine info', kind: 'client' }, async () => undefined);
    throw new ApiError('upstream_unavailable', 'away');
  });
  const send = createSignedFetch({
    baseUrl: agent,
    audience: 'agent',
    clock,
    random: systemRandom,
    signer: createSigner(new Uint8Array(32)),
  });
  front = await serve(false, async () => {
    await send({ method: 'GET', path: `/v1/pods/${ID}` });
    return {};
  });
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
  await receiver.close();
});

async function serve(acceptTraceparent: boolean, handler: () => Promise<unknown>): Promise<string> {
  const log = createLog({ name: 'test', level: 'silent' });
  const ports = { log, clock, random: systemRandom, bodyLimitBytes: 1_000 };
  const server = createHttpServer({ ...ports, acceptTraceparent });
  server.get('/v1/pods/:id', handler);
  servers.push(server);
  return server.listen({ host: '127.0.0.1', port: 0 });
}

it('does not trace unless the standard variables name a collector', async () => {
  expect(isTracingConfigured({})).toBe(false);
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
  expect(isTracingConfigured(endpoint)).toBe(true);
  expect(isTracingConfigured({ ...endpoint, OTEL_SDK_DISABLED: 'true' })).toBe(false);
  expect(isTracingConfigured({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' })).toBe(false);
  const tracing = await startTracing('test', {}, { clock: systemClock, log });
  await fetch(`${front}/v1/pods/${ID}`);
  const off = await inSpan({ name: 'x', kind: 'internal' }, async () => currentTraceparent());
  expect(off).toBeNull();
  await tracing.close();
  expect(receiver.spans).toEqual([]);
});

it('exports a request, its outgoing call and the called server’s work as one trace', async () => {
  // The exporter reads the variable itself.
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = receiver.url;
  const tracing = await startTracing('podwright-test', process.env, { clock: systemClock, log });
  const headers = { traceparent: FOREIGN, 'x-request-id': 'request-of-this' };
  await fetch(`${front}/v1/pods/${ID}`, { headers });
  await tracing.close();
  delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];

  expect(receiver.refused).toEqual([]);
  const byParent = (parent: string | undefined) =>
    receiver.spans.find(({ parentSpanId = '' }) => parentSpanId === (parent ?? ''));
  const first = byParent(undefined);
  const hop = byParent(first?.spanId);
  const second = byParent(hop?.spanId);
  const engine = byParent(second?.spanId);
  expect([first, hop, second, engine]).toMatchObject([
    {
      name: 'GET /v1/pods/:id',
      kind: 2,
      attributes: { 'podwright.request_id': 'request-of-this' },
    },
    { name: 'GET /v1/pods/:id', kind: 3, attributes: { 'podwright.audience': 'agent' } },
    { name: 'GET /v1/pods/:id', kind: 2, status: { code: 2 } },
    { name: 'engine info', kind: 3 },
  ]);
  expect(first?.attributes['http.response.status_code']).toBe(200);
  expect(second?.attributes['podwright.request_id']).toBe('request-of-this');
  expect(first?.service).toBe('podwright-test');
  expect(new Set(receiver.spans.map(({ traceId }) => traceId)).size).toBe(1);
  // The front server does not trust its callers, so it does not use their trace id.
  expect(first?.traceId).not.toBe(parseTraceparent(FOREIGN)?.traceId);
  expect(receiver.spans).toHaveLength(4);
});

it('rejects an endpoint that is not an http URL and names its variable', () => {
  for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']) {
    for (const place of ['localhost:4318', 'x', 'grpc://127.0.0.1:4317']) {
      expect(() => isTracingConfigured({ [name]: place })).toThrow(`${name}: must be`);
    }
  }
});

it('logs a failed export once', async () => {
  lines.length = 0;
  // The collector responds with 400, which the exporter does not retry.
  process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] = `${receiver.url}/elsewhere`;
  const { tracer, close } = createOtlpTracer('test', log);
  delete process.env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  tracer.open({ name: 'x', kind: 'internal' }, null).end(null);
  await expect(close()).rejects.toThrow('Bad Request');
  expect(lines.map(({ msg }) => msg)).toEqual(['span export failed']);
});

it.each([
  '',
  'x',
  FOREIGN.replace('00-', 'ff-'),
  FOREIGN.replace(/-b7.{14}/, `-${'0'.repeat(16)}`),
])('rejects the traceparent %j', (text) => {
  expect(parseTraceparent(text)).toBeNull();
});

it('formats a parsed traceparent as the original text', () => {
  const parsed = parseTraceparent(FOREIGN);
  expect(parsed === null ? '' : formatTraceparent(parsed)).toBe(FOREIGN);
});
