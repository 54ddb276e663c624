/** Bandwidth measurement between validator and agent over a real connection. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSignedConnect, type SignedConnect } from '#shared/api/agent/connect.ts';
import { SPEED_TEST_PATH } from '#shared/api/agent/host-checks.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSpeedTests } from '../../agent/verify/speed-test.service.ts';
import { registerSpeedTestRoutes } from '../../agent/verify/verify.routes.ts';
import {
  type LineSample,
  type LineSize,
  measureLine,
} from '../../validator/inspection/lines/measure-line.ts';
import { eventually } from '../fakes/eventually.ts';
import { createManualClock } from '../fakes/manual-clock.ts';
import { testSigner } from '../fakes/scenes/market-fixture.ts';

const EXECUTOR = '3f9f41a6-0001-4000-8000-000000000001';
const KIB = 1024;
/** Sizes of the streams. The time limit is never reached, so the size grows to its maximum. */
const SIZE: LineSize = {
  firstBytes: 32 * KIB,
  mostBytes: 1024 * KIB,
  enoughMs: 60_000,
  mostMs: 60_000,
};
const log = createLog({ name: 'test', level: 'silent' });

let server: HttpServer;
let stopping: AbortController;
let giveUp: AbortController;
let isRented: boolean;
let connect: SignedConnect;
beforeEach(async () => {
  [isRented, stopping, giveUp] = [false, new AbortController(), new AbortController()];
  const options = { log, clock: systemClock, random: systemRandom, bodyLimitBytes: 1_024 };
  server = createHttpServer(options);
  const ports = { clock: systemClock, executorId: EXECUTOR, isRented: () => isRented };
  const speedTests = createSpeedTests(ports);
  registerSpeedTestRoutes(server, { speedTests, stopping: stopping.signal });
  const baseUrl = await server.listen({ host: '127.0.0.1', port: 0 });
  connect = createSignedConnect({
    baseUrl,
    audience: EXECUTOR,
    signer: testSigner(1),
    clock: systemClock,
    random: systemRandom,
  });
});
afterEach(() => server.close());

const path = `${SPEED_TEST_PATH}?executor_id=${EXECUTOR}`;
const open = () => connect({ path, maxMessageBytes: 64 * KIB });

function measure(change: { clock?: typeof systemClock; id?: string; size?: Partial<LineSize> }) {
  const { clock = systemClock, id = EXECUTOR } = change;
  const size = { ...SIZE, ...change.size };
  const { signal } = giveUp;
  return measureLine({ connect, clock, random: systemRandom, size, signal }, id);
}

it('the test increases the size of its streams in both directions, and receives exactly what was sent', async () => {
  const sample = await measure({});
  expect(sample).toMatchObject({ status: 'measured', falseStream: null });
  const { downKbit, upKbit } = sample as LineSample & { status: 'measured' };
  // Loopback is far faster than a megabit per second.
  expect(Math.min(downKbit, upKbit)).toBeGreaterThan(1_000);
  await eventually('free again', async () => (await measure({})).status === 'measured');
});

it('the test stops when it has run long enough for a result', async () => {
  const sample = await measure({ size: { firstBytes: 1024 * KIB, mostMs: 0 } });
  expect(sample).toMatchObject({ status: 'measured', falseStream: null });
});

it('an agent rejects the test while a pod or another test runs, and for another executor', async () => {
  isRented = true;
  expect(await measure({})).toMatchObject({ status: 'refused' });
  isRented = false;
  const busy = await open();
  expect(await measure({})).toMatchObject({ status: 'refused' });
  busy.terminate();
  expect((await measure({ id: 'another' })).status).toBe('not_measured');
  const plain = await server.inject({ url: path });
  expect(plain.statusCode).toBe(426);
});

it('the test returns no bandwidth when the connection breaks, and a low bandwidth when the connection stalls', async () => {
  const broken: SignedConnect = async (request) => {
    const socket = await connect(request);
    socket.once('message', () => socket.terminate());
    return socket;
  };
  const size = { ...SIZE, enoughMs: 1_000 };
  const deps = { clock: systemClock, random: systemRandom, size, signal: giveUp.signal };
  const lost = await measureLine({ ...deps, connect: broken }, EXECUTOR);
  expect(lost.status).toBe('not_measured');

  const clock = createManualClock();
  let isSilent = false;
  const stalled: SignedConnect = async (request) => {
    const socket = await eventuallyOpen(request);
    // Drops every message.
    socket.on = ((event: string, listener: never) => {
      isSilent ||= event === 'message';
      return event === 'message' ? socket : socket.addListener(event, listener);
    }) as typeof socket.on;
    return socket;
  };
  const measuring = measureLine({ ...deps, clock, connect: stalled }, EXECUTOR);
  await eventually('waiting', () => isSilent);
  await clock.advance(31_000);
  expect(await measuring).toMatchObject({ status: 'measured', falseStream: null });
  const { downKbit } = (await measuring) as LineSample & { status: 'measured' };
  expect(downKbit).toBeLessThan(100);
});

async function eventuallyOpen(request: Parameters<SignedConnect>[0]) {
  const opened = { socket: await connect(request).catch(() => null) };
  await eventually('free', async () => {
    opened.socket ??= await connect(request).catch(() => null);
    return opened.socket !== null;
  });
  if (opened.socket === null) throw new Error('not opened');
  return opened.socket;
}

describe('an unexpected message ends the test', () => {
  it.each([
    ['bytes that were not announced', new Uint8Array(8)],
    ['text that is not JSON', 'hello'],
    ['an end without a start', '{"type":"end"}'],
    ['a size above the limit', '{"type":"up","seed":"00","bytes":1e12}'],
  ])('%s', async (_, message) => {
    const socket = await open();
    const closed = new Promise<number>((resolve) => socket.once('close', resolve));
    socket.resume();
    socket.send(message);
    expect(await closed).toBe(1008);
  });
});

it('the agent aborts the test when the validator disconnects', async () => {
  const opened = Promise.withResolvers<void>();
  const slow: SignedConnect = async (request) => {
    const socket = await connect(request);
    socket.once('message', () => opened.resolve());
    return socket;
  };
  const deps = { connect: slow, clock: systemClock, random: systemRandom, size: SIZE };
  const measuring = measureLine({ ...deps, signal: giveUp.signal }, EXECUTOR);
  await opened.promise;
  giveUp.abort();
  expect((await measuring).status).toBe('not_measured');
});

it('the test ends when the agent stops', async () => {
  const socket = await open();
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  socket.resume();
  stopping.abort();
  expect(await closed).toBe(1001);
});
