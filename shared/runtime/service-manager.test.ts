import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { type NotifySocket, openNotifySocket } from '../../test/fakes/external/notify-socket.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import type { Vitals } from './liveness.ts';
import {
  createServiceManager,
  FED_AT,
  LOOK_WITHIN_MS,
  startWatchdog,
  TOLD_WITHIN_MS,
} from './service-manager.ts';

const PID = 4_711;
const log = createLog({ name: 'test', level: 'silent' });
const WELL: Vitals = { sinceTurnMs: 0, storeProblem: null, engine: 'answers' };
const bounds = { turnWithinMs: 1_000 };

let socket: NotifySocket;
beforeEach(async () => {
  socket = await openNotifySocket();
});
afterEach(() => socket.close());

const managerIn = (environment: Record<string, string | undefined>) =>
  createServiceManager({ environment, pid: PID, runCommand, clock: systemClock, log });
const variables = (more: Record<string, string> = {}) => ({
  PATH: process.env['PATH'],
  NOTIFY_SOCKET: socket.path,
  ...more,
});

it('tells a real socket that it is ready, well, ill and stopping, and feeds the watchdog only while well', async () => {
  let vitals = WELL;
  const environment = variables({ WATCHDOG_USEC: '100000', WATCHDOG_PID: String(PID) });
  const manager = managerIn(environment);
  await manager.ready({ look: async () => vitals, bounds });
  expect(socket.messages()[0]).toBe('READY=1|STATUS=serving');
  await eventually('a fed watchdog', () => socket.messages().includes('WATCHDOG=1|STATUS=serving'));
  vitals = { ...WELL, storeProblem: 'no\nway' };
  const ill = 'STATUS=the store does not work: no way';
  await eventually('an ailment told', () => socket.messages().includes(ill));
  await manager.stopping();
  const afterIll = socket.messages().slice(socket.messages().indexOf(ill));
  expect(afterIll.filter((message) => message.includes('WATCHDOG'))).toEqual([]);
  expect(afterIll.at(-1)).toBe('STOPPING=1|STATUS=stopping');
});

it('leaves a watchdog alone that is another process\u2019s, and takes its variables from children', async () => {
  const environment = variables({ WATCHDOG_USEC: '1000', WATCHDOG_PID: String(PID + 1) });
  const manager = managerIn(environment);
  expect(Object.keys(environment)).toEqual(['PATH']);
  await manager.ready({ look: async () => WELL, bounds });
  await manager.stopping();
  expect(socket.messages()).toEqual(['READY=1|STATUS=serving', 'STOPPING=1|STATUS=stopping']);
});

it('says nothing where nobody listens', async () => {
  const manager = createServiceManager({
    environment: { WATCHDOG_USEC: '1000' },
    pid: PID,
    runCommand: () => Promise.reject(new Error('nothing is to be run')),
    clock: systemClock,
    log,
  });
  await expect(manager.ready({ look: async () => WELL, bounds })).resolves.toBeUndefined();
  await expect(manager.stopping()).resolves.toBeUndefined();
});

it('is in time for the watchdogs of our units on a slow day, too', () => {
  const folder = new URL('../../systemd/', import.meta.url);
  const units = readdirSync(folder).filter((name) => name.endsWith('.service'));
  const watched = units.flatMap((name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    const [, seconds] = /^WatchdogSec=(\d+)$/m.exec(text) ?? [];
    return seconds === undefined ? [] : [{ name, text, ms: Number(seconds) * 1_000 }];
  });
  expect(watched.map(({ name }) => name).sort()).toEqual([
    ...['podwright-agent.service', 'podwright-central.service'],
    ...['podwright-ssh-gateway.service', 'podwright-validator.service'],
  ]);
  for (const { text, ms } of watched) {
    expect(ms * FED_AT + LOOK_WITHIN_MS + TOLD_WITHIN_MS).toBeLessThan(ms);
    // However often it bites, the service comes back.
    expect(text).toMatch(/^StartLimitIntervalSec=0$/m);
  }
});

describe('the watchdog', () => {
  const WELL: Vitals = { sinceTurnMs: 0, storeProblem: null, engine: 'unused' };
  const THIRD_MS = 10_000;

  let watchdog: { stop(): Promise<void> };
  afterEach(() => watchdog.stop());

  /** What was told so far, `fed` for each feeding. */
  function watchedBy(clock: ManualClock, look: () => Promise<Vitals>): string[] {
    const told: string[] = [];
    watchdog = startWatchdog({
      watch: { look, bounds },
      intervalMs: THIRD_MS,
      tell: async ([first = '']) => {
        told.push(first === 'WATCHDOG=1' ? 'fed' : first);
      },
      clock,
      log,
    });
    return told;
  }

  it('feeds at its interval, looks again soon while ill, and feeds as soon as that has passed', async () => {
    const clock = createManualClock();
    let vitals = WELL;
    const told = watchedBy(clock, async () => vitals);
    await clock.advance(2 * THIRD_MS);
    expect(told).toEqual(['fed', 'fed']);
    vitals = { ...WELL, storeProblem: 'gone' };
    await clock.advance(THIRD_MS + 2_000);
    expect(told.slice(2)).toEqual(Array(3).fill('STATUS=the store does not work: gone'));
    vitals = WELL;
    await clock.advance(1_000);
    expect(told.at(-1)).toBe('fed');
  });

  it('takes a look that never ends, or fails, for an ailment', async () => {
    const clock = createManualClock();
    let look = (): Promise<Vitals> => new Promise(() => undefined);
    const told = watchedBy(clock, () => look());
    await clock.advance(THIRD_MS + LOOK_WITHIN_MS);
    expect(told).toEqual(['STATUS=it could not be looked at: no answer within 8000 ms']);
    look = () => Promise.reject(new Error('broken'));
    await clock.advance(1_000);
    expect(told.at(-1)).toBe('STATUS=it could not be looked at: broken');
  });

  it('holds the feed back while its own timers come late', async () => {
    const clock = createManualClock();
    let lateMs = 5_000;
    const told = watchedBy(
      { ...clock, sleep: (ms, signal) => clock.sleep(ms + lateMs, signal) },
      async () => WELL,
    );
    await clock.advance(THIRD_MS + lateMs);
    expect(told).toEqual(['STATUS=the event loop lags by 5000 ms']);
    lateMs = 0;
    await clock.advance(6_000);
    await clock.advance(1_000);
    expect(told.at(-1)).toBe('fed');
  });
});
