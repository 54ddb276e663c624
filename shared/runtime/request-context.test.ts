import { afterAll, expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createHttpServer } from '../http/server.ts';
import { createSignedFetch } from '../signing/signed-fetch.ts';
import { createSigner } from '../signing/sr25519.ts';
import { createLog } from './log.ts';
import { systemRandom } from './random.ts';
import { currentRequestId, withRequestId } from './request-context.ts';

const lines: Record<string, unknown>[] = [];
const log = createLog(
  { name: 'test', level: 'info' },
  { write: (line: string) => void lines.push(JSON.parse(line)) },
);
const server = createHttpServer({
  log,
  clock: createManualClock(),
  random: systemRandom,
  bodyLimitBytes: 1_000,
});
server.all('/x', async () => {
  await Promise.resolve();
  log.info('at work');
  log.child({ request_id: 'of-its-own' }).info('at other work');
  return { id: currentRequestId() };
});
const origin = await server.listen({ host: '127.0.0.1', port: 0 });
afterAll(() => server.close());
const signer = createSigner(new Uint8Array(32));
const clock = createManualClock();
const send = createSignedFetch({
  baseUrl: origin,
  audience: 'x',
  signer,
  clock,
  random: systemRandom,
});

it('carries the id across awaits into log lines and outgoing requests, with or without a body', async () => {
  for (const [method, body] of [
    ['POST', '{}'],
    ['GET', undefined],
  ] as const) {
    lines.length = 0;
    const id = `request-of-${method}`;
    const sent = { method, path: '/x', ...(body === undefined ? {} : { body }) };
    const answer = await withRequestId(id, () => send(sent));
    expect(await answer.json()).toEqual({ id });
    expect(lines.slice(0, 2)).toMatchObject([
      { msg: 'at work', request_id: id },
      { msg: 'at other work', request_id: 'of-its-own' },
    ]);
    const answered = { msg: 'answered', request_id: id, method, route: '/x', status: 200 };
    expect(lines.slice(2)).toMatchObject(method === 'GET' ? [] : [answered]);
  }
});

it('has no id outside a request', async () => {
  lines.length = 0;
  log.info('alone');
  expect(lines).toEqual([expect.not.objectContaining({ request_id: expect.anything() })]);
  expect(withRequestId('some-request', () => withRequestId(null, currentRequestId))).toBeNull();
});
