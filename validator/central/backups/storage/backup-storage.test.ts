import { expect, it } from 'vitest';
import { createHttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { listeningOrigin } from './backup-storage.ts';

it.each([
  ['127.0.0.1', '127.0.0.1'],
  ['0.0.0.0', '127.0.0.1'],
  ['::1', '[::1]'],
])('returns the origin of a listener at %s with the host %s', async (host, shown) => {
  const log = createLog({ name: 'test', level: 'silent' });
  const options = { log, clock: systemClock, random: systemRandom, bodyLimitBytes: 1_000 };
  const server = createHttpServer(options);
  expect(() => listeningOrigin(server)).toThrow(/does not listen yet/);
  await server.listen({ host, port: 0 });
  const origin = listeningOrigin(server);
  expect(origin).toMatch(/:\d+$/);
  expect(origin.startsWith(`http://${shown}:`)).toBe(true);
  expect((await fetch(origin)).status).toBe(404);
  await server.close();
});
