import { expect, it } from 'vitest';
import { systemClock } from '../runtime/clock.ts';
import { createLog } from '../runtime/log.ts';
import { systemRandom } from '../runtime/random.ts';
import { listenOn } from './listen.ts';
import { createHttpServer } from './server.ts';

const NAMES = { host: 'X_HOST', port: 'X_PORT' };

it('names the problem of a port or address and the variable to change', async () => {
  const log = createLog({ name: 'test', level: 'fatal' });
  const create = () =>
    createHttpServer({ log, clock: systemClock, random: systemRandom, bodyLimitBytes: 1_000 });
  const server = create();
  await listenOn(server, { host: '127.0.0.1', port: 0 }, NAMES);
  const [first] = server.addresses();
  const port = typeof first === 'object' ? first.port : 0;
  const taken = listenOn(create(), { host: '127.0.0.1', port }, NAMES);
  await expect(taken).rejects.toThrow(
    `port ${port} on 127.0.0.1 is in use: stop the process that uses it, or choose another with X_PORT`,
  );
  await server.close();
  // An address from a range reserved for documentation, which no machine has.
  const elsewhere = listenOn(create(), { host: '192.0.2.1', port }, NAMES);
  await expect(elsewhere).rejects.toThrow(
    'this machine has no address 192.0.2.1: choose one of its addresses with X_HOST',
  );
});
