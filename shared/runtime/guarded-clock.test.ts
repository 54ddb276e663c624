import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createJumpingClock, type JumpingClock } from '../../test/fakes/jumping-clock.ts';
import { clockRecordsIn, readStoredClock, runClockCommand } from './clock-file.ts';
import { createGuardedClock, type GuardedClock } from './guarded-clock.ts';
import { createLog } from './log.ts';
import { systemRandom } from './random.ts';

const DAY_MS = 86_400_000;
const FORTY_DAYS_MS = 40 * DAY_MS;

let home: string;
let host: JumpingClock;
let lines: string[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'clock-'));
  host = createJumpingClock();
  lines = [];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Starts a process with this home. `bootMs`: right time of the boot. */
function open({ bootId = 'boot', bootMs = 0 } = {}): GuardedClock {
  const log = createLog(
    { name: 'test', level: 'info' },
    { write: (line) => void lines.push(line) },
  );
  const boot = { bootId, uptimeMs: () => host.rightMs() - bootMs };
  const records = clockRecordsIn(home, { random: systemRandom, log });
  return createGuardedClock({ clock: host, log, boot, records });
}

const logged = (text: string) => lines.filter((line) => line.includes(text)).length;

it('does not show a jump of 25 s to any caller, and reports it once', async () => {
  const guard = open();
  await host.advance(1_000);
  host.setAhead(FORTY_DAYS_MS);
  for (let second = 0; second < 25; second += 1) {
    expect(guard.clock.now()).toBe(host.rightMs());
    expect(guard.isSuspect()).toBe(true);
    await host.advance(1_000);
  }
  expect(guard.status()).toMatchObject({ suspicion: 'jumped', timeMs: host.rightMs() });
  host.setAhead(0);
  expect(guard.isSuspect()).toBe(false);
  expect(guard.clock.now()).toBe(host.rightMs());
  expect(guard.resumedAtMs()).toBe(host.rightMs());
  expect([logged('the clock is suspect'), logged('trusted again')]).toEqual([1, 1]);
});

it('holds the time across a restart during the jump', async () => {
  const guard = open();
  guard.start();
  await host.advance(60_000);
  host.setAhead(FORTY_DAYS_MS);
  await host.advance(10_000);
  await guard.stop();
  await host.advance(300_000);
  const next = open();
  expect(next.status()).toMatchObject({ suspicion: 'jumped', timeMs: host.rightMs() });
  host.setAhead(0);
  expect(next.isSuspect()).toBe(false);
});

it('after a reboot with a clock far ahead, waits for a peer and then makes one step', async () => {
  const before = open();
  before.start();
  await host.advance(60_000);
  await before.stop();
  const storedMs = host.rightMs();
  await host.advance(21 * DAY_MS);
  const guard = open({ bootId: 'next', bootMs: host.rightMs() });
  expect(guard.status()).toMatchObject({ suspicion: 'far_after_record', timeMs: storedMs });
  const steps: number[] = [];
  guard.beforeStep(async () => void steps.push(guard.clock.now()));
  guard.heardFrom(host.rightMs() - 5_000);
  await host.advance(0);
  expect(steps).toEqual([storedMs]);
  expect(guard.isSuspect()).toBe(false);
  expect(guard.clock.now()).toBe(host.rightMs());
});

it('keeps the earlier time if the preparation of a step fails, and tries again', async () => {
  const guard = open();
  host.setAhead(FORTY_DAYS_MS);
  let isBroken = true;
  guard.beforeStep(async () => {
    if (isBroken) throw new Error('the database is busy');
  });
  await expect(guard.confirm()).rejects.toThrow('the database is busy');
  expect(guard.clock.now()).toBe(host.rightMs());
  isBroken = false;
  expect(await guard.confirm()).toMatchObject({ suspicion: null, timeMs: host.now() });
  expect(guard.clock.now()).toBe(host.rightMs() + FORTY_DAYS_MS);
});

it('believes the clock within seconds of the command, which also shows the state', async () => {
  expect(runClockCommand([], home, systemRandom)).toContain('No process');
  const guard = open();
  guard.start();
  await host.advance(60_000);
  host.setAhead(-FORTY_DAYS_MS);
  await host.advance(5_000);
  expect(runClockCommand([], home, systemRandom)).toContain(
    'suspect: the clock of the host jumped',
  );
  runClockCommand(['confirm'], home, systemRandom);
  await host.advance(5_000);
  expect(guard.clock.now()).toBe(host.now());
  expect(runClockCommand([], home, systemRandom)).toContain('clock: trusted');
  expect(() => runClockCommand(['reset'], home, systemRandom)).toThrow('usage');
  await guard.stop();
  expect(readdirSync(home)).toEqual(['clock.json']);
  expect(statSync(join(home, 'clock.json')).mode & 0o777).toBe(0o600);
});

it('replaces a damaged file, and says so', async () => {
  writeFileSync(join(home, 'clock.json'), '{"timeMs":', { mode: 0o600 });
  const guard = open();
  expect(() => runClockCommand([], home, systemRandom)).toThrow(
    `${join(home, 'clock.json')} is damaged`,
  );
  expect(guard.isSuspect()).toBe(false);
  expect(logged('the stored time is damaged')).toBe(1);
  guard.start();
  await host.advance(30_000);
  await guard.stop();
  expect(readStoredClock(home)).toMatchObject({ timeMs: host.rightMs() });
});

it('observes the sleep of the host as a time in which others were not watched', async () => {
  const log = createLog({ name: 'test', level: 'silent' });
  let sleptMs = 0;
  const boot = { bootId: 'boot', uptimeMs: () => host.rightMs() + sleptMs };
  const guard = createGuardedClock({ clock: host, log, boot });
  await host.advance(5_000);
  sleptMs = 21 * DAY_MS;
  host.setAhead(sleptMs);
  expect(guard.isSuspect()).toBe(false);
  expect(guard.clock.now()).toBe(host.now());
  expect(guard.resumedAtMs()).toBe(host.now());
});
