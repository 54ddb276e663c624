import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { type NotifySocket, openNotifySocket } from '../../test/fakes/external/notify-socket.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import type { Liveness } from './liveness.ts';
import {
  createServiceManager,
  NOTIFY_TIMEOUT_MS,
  PROBE_TIMEOUT_MS,
  startWatchdog,
  WATCHDOG_FRACTION,
} from './service-manager.ts';

const PID = 4_711;
const log = createLog({ name: 'test', level: 'silent' });
const HEALTHY: Liveness = { heartbeatAgeMs: 0, storeProblem: null, engine: 'answers' };
const limits = { maxHeartbeatAgeMs: 1_000 };

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

it('notifies a real socket of each state, and feeds the watchdog only while healthy', async () => {
  let liveness = HEALTHY;
  const environment = variables({ WATCHDOG_USEC: '100000', WATCHDOG_PID: String(PID) });
  const manager = managerIn(environment);
  await manager.ready({ check: async () => liveness, limits });
  expect(socket.messages()[0]).toBe('READY=1|STATUS=serving');
  await eventually('a fed watchdog', () => socket.messages().includes('WATCHDOG=1|STATUS=serving'));
  liveness = { ...HEALTHY, storeProblem: 'no\nway' };
  const problem = 'STATUS=the store failed: no way';
  await eventually('a notified problem', () => socket.messages().includes(problem));
  await manager.stopping();
  const afterProblem = socket.messages().slice(socket.messages().indexOf(problem));
  expect(afterProblem.filter((message) => message.includes('WATCHDOG'))).toEqual([]);
  expect(afterProblem.at(-1)).toBe('STOPPING=1|STATUS=stopping');
});

it('does not feed another process’s watchdog, and hides systemd’s variables from children', async () => {
  const environment = variables({ WATCHDOG_USEC: '1000', WATCHDOG_PID: String(PID + 1) });
  const manager = managerIn(environment);
  expect(Object.keys(environment)).toEqual(['PATH']);
  await manager.ready({ check: async () => HEALTHY, limits });
  await manager.stopping();
  expect(socket.messages()).toEqual(['READY=1|STATUS=serving', 'STOPPING=1|STATUS=stopping']);
});

it('sends no notification if systemd has set no socket', async () => {
  const manager = createServiceManager({
    environment: { WATCHDOG_USEC: '1000' },
    pid: PID,
    runCommand: () => Promise.reject(new Error('must not run')),
    clock: systemClock,
    log,
  });
  await expect(manager.ready({ check: async () => HEALTHY, limits })).resolves.toBeUndefined();
  await expect(manager.stopping()).resolves.toBeUndefined();
});

it('feeds the watchdogs of our units in time, even if check and notification are slow', () => {
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
    expect(ms * WATCHDOG_FRACTION + PROBE_TIMEOUT_MS + NOTIFY_TIMEOUT_MS).toBeLessThan(ms);
    // systemd restarts the service no matter how often the watchdog expires.
    expect(text).toMatch(/^StartLimitIntervalSec=0$/m);
  }
});

describe('the watchdog', () => {
  const HEALTHY: Liveness = { heartbeatAgeMs: 0, storeProblem: null, engine: 'unused' };
  const THIRD_MS = 10_000;

  let watchdog: { stop(): Promise<void> };
  afterEach(() => watchdog.stop());

  /** Starts a watchdog and returns its notifications: `fed` each time it feeds systemd. */
  function startWith(clock: ManualClock, check: () => Promise<Liveness>): string[] {
    const sent: string[] = [];
    watchdog = startWatchdog({
      probe: { check, limits },
      intervalMs: THIRD_MS,
      notify: async ([first = '']) => {
        sent.push(first === 'WATCHDOG=1' ? 'fed' : first);
      },
      clock,
      log,
    });
    return sent;
  }

  it('is fed at its interval; a problem is rechecked soon, and feeding resumes once it has passed', async () => {
    const clock = createManualClock();
    let liveness = HEALTHY;
    const sent = startWith(clock, async () => liveness);
    await clock.advance(2 * THIRD_MS);
    expect(sent).toEqual(['fed', 'fed']);
    liveness = { ...HEALTHY, storeProblem: 'gone' };
    await clock.advance(THIRD_MS + 2_000);
    expect(sent.slice(2)).toEqual(Array(3).fill('STATUS=the store failed: gone'));
    liveness = HEALTHY;
    await clock.advance(1_000);
    expect(sent.at(-1)).toBe('fed');
  });

  it('is not fed if the check hangs or fails', async () => {
    const clock = createManualClock();
    let check = (): Promise<Liveness> => new Promise(() => undefined);
    const sent = startWith(clock, () => check());
    await clock.advance(THIRD_MS + PROBE_TIMEOUT_MS);
    expect(sent).toEqual(['STATUS=the liveness check failed: no answer within 8000 ms']);
    check = () => Promise.reject(new Error('broken'));
    await clock.advance(1_000);
    expect(sent.at(-1)).toBe('STATUS=the liveness check failed: broken');
  });

  it('is not fed while timers of the process fire late', async () => {
    const clock = createManualClock();
    let lateMs = 5_000;
    const sent = startWith(
      { ...clock, sleep: (ms, signal) => clock.sleep(ms + lateMs, signal) },
      async () => HEALTHY,
    );
    await clock.advance(THIRD_MS + lateMs);
    expect(sent).toEqual(['STATUS=the event loop lags by 5000 ms']);
    lateMs = 0;
    await clock.advance(6_000);
    await clock.advance(1_000);
    expect(sent.at(-1)).toBe('fed');
  });
});
