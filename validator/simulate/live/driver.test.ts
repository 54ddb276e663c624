import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { createEventClock } from '../time/event-clock.ts';
import { startDriver } from './driver.ts';

const HOUR_MS = 3_600_000;
const START_MS = 1_000_000;

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function drive() {
  const clock = createEventClock(START_MS);
  const market = { isReachable: true, hasFailed: false };
  const driver = startDriver({
    clock,
    real: systemClock,
    isReachable: () => market.isReachable,
    hasFailed: () => market.hasFailed,
  });
  stops.push(async () => {
    await driver.stop();
    clock.close();
  });
  const passedMs = () => clock.steadyMs() - START_MS;
  const isPaused = () => driver.state().status === 'paused';
  return { clock, driver, market, passedMs, isPaused };
}

/** Work that never ends, such as the heartbeat of a stream. */
async function repeat(run: () => void, sleep: () => Promise<void>): Promise<never> {
  for (;;) {
    await sleep();
    run();
  }
}

it('serves requests at the standing time while it is paused', async () => {
  const { clock, passedMs } = drive();
  expect(await clock.gate.pass(async () => 'stored')).toBe('stored');
  expect(passedMs()).toBe(0);
});

it('advances exactly, with all consequences, and is then paused', async () => {
  const { clock, driver, passedMs, isPaused } = drive();
  const seenMs: number[] = [];
  void repeat(
    () => seenMs.push(passedMs()),
    () => clock.sleep(HOUR_MS),
  );
  driver.advance(2 * HOUR_MS + 1);
  expect(driver.state()).toEqual({
    status: 'advancing',
    speed: null,
    targetMs: START_MS + 2 * HOUR_MS + 1,
  });
  await eventually('the end', isPaused);
  expect(seenMs).toEqual([HOUR_MS, 2 * HOUR_MS]);
  expect(passedMs()).toBe(2 * HOUR_MS + 1);
});

it('refuses a second advance and a speed until a pause cancels the advance', async () => {
  const { clock, driver, passedMs } = drive();
  let ticks = 0;
  void repeat(
    () => {
      ticks += 1;
    },
    () => clock.sleep(1),
  );
  driver.advance(1_000 * HOUR_MS);
  expect(() => driver.advance(1)).toThrow(expect.objectContaining({ code: 'conflict' }));
  expect(() => driver.run(1)).toThrow(expect.objectContaining({ code: 'conflict' }));
  await eventually('the first timers', () => ticks > 10);
  driver.pause();
  expect(driver.state().status).toBe('paused');
  await systemClock.sleep(50);
  const standingMs = passedMs();
  await systemClock.sleep(50);
  expect(passedMs()).toBe(standingMs);
  expect(standingMs).toBeLessThan(1_000 * HOUR_MS);
});

it('lets time pass at a speed, also after an advance', async () => {
  const { driver, passedMs } = drive();
  driver.run(3_600);
  await eventually('an hour', () => passedMs() > HOUR_MS);
  driver.advance(100 * HOUR_MS);
  await eventually('the end of the advance', () => driver.state().targetMs === null);
  expect(driver.state()).toMatchObject({ status: 'running', speed: 3_600 });
});

it('runs on while the central API is down, until it is back', async () => {
  const { clock, market, passedMs, isPaused } = drive();
  market.isReachable = false;
  void clock.sleep(10 * HOUR_MS).then(() => {
    market.isReachable = true;
  });
  await eventually('the restart', isPaused);
  expect(passedMs()).toBe(10 * HOUR_MS);
});

it('pauses at the first violation, once', async () => {
  const { clock, driver, market, passedMs, isPaused } = drive();
  void clock.sleep(HOUR_MS).then(() => {
    market.hasFailed = true;
  });
  driver.advance(2 * HOUR_MS);
  await eventually('the pause', isPaused);
  expect(passedMs()).toBe(HOUR_MS);
  driver.advance(2 * HOUR_MS);
  await eventually('the end', isPaused);
  expect(passedMs()).toBe(3 * HOUR_MS);
});

it('measures the jumps of the wall clock before and during an advance, and keeps them after its end', async () => {
  const { clock, driver, passedMs, isPaused } = drive();
  clock.jump(-HOUR_MS);
  void clock.sleep(HOUR_MS).then(() => clock.jump(-600_000));
  expect(driver.jumpMs()).toBe(-HOUR_MS);
  driver.advance(2 * HOUR_MS);
  await eventually('the end', isPaused);
  expect(passedMs()).toBe(2 * HOUR_MS);
  expect(driver.jumpMs()).toBe(-HOUR_MS - 600_000);
  clock.jump(5_000);
  driver.advance(1);
  await eventually('the end', isPaused);
  expect(driver.jumpMs()).toBe(5_000);
  driver.advance(1);
  await eventually('the end', isPaused);
  expect(driver.jumpMs()).toBe(0);
});

it('ends with the error of a timer', async () => {
  const driver = startDriver({
    clock: {
      steadyMs: () => 0,
      now: () => 0,
      runUntil: () => Promise.reject(new Error('a timer failed')),
    },
    real: systemClock,
    isReachable: () => true,
    hasFailed: () => false,
  });
  await expect(driver.ended).rejects.toThrow('a timer failed');
});
