import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { createRoundTrips } from './round-trip.ts';

const server = createServer((socket) => socket.resume());
const BERLIN = { lat: 52.52, lon: 13.405 };
const { executor } = checkRun({ atMs: 0 }).facts;
let port: number;
beforeAll(async () => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  port = (server.address() as AddressInfo).port;
});
afterAll(() => server.close());

const measure = (to: number, coordinates: typeof BERLIN | null) =>
  createRoundTrips({ clock: systemClock, coordinates })({
    ...executor,
    executor_ip_port: String(to),
  });

it('measures the time of a handshake, with the coordinates of the validator', async () => {
  const trip = await measure(port, BERLIN);
  expect(trip).toEqual({ ms: expect.any(Number), ...BERLIN });
  expect(trip?.ms).toBeGreaterThan(0);
  expect(trip?.ms).toBeLessThan(1_000);
});

it('measures nothing without coordinates', async () => {
  expect(await measure(port, null)).toBeNull();
});

it('measures nothing if the agent cannot be reached', async () => {
  expect(await measure(1, BERLIN)).toBeNull();
});
