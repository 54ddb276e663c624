/** Checks of the host's clock: signed requests with a wrong time are rejected. */
import { type Clock, parseHttpDate } from '../runtime/clock.ts';
import { readStoredClock, type StoredClock, SUSPICION_TEXTS } from '../runtime/clock-file.ts';
import { BELIEVED_STEP_MS } from '../runtime/clock-guard.ts';
import type { RunCommand } from '../runtime/run-command.ts';
import { fail, ok, unknown, unread, warn } from './check.ts';
import type { DoctorCheck } from './doctor.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import { type Observed, observe } from './observe.ts';

export type ClockFacts = {
  synchronised: Observed<boolean>;
  /**
   * This clock minus the other one in milliseconds, exact to `withinMs`; null if no URL for the other clock was given.
   */
  skew: { url: string; observed: Observed<{ ms: number; withinMs: number }> } | null;
  /** The clock's time and what the process with this home stored last; null before its first start. */
  stored: Observed<{ nowMs: number; clock: StoredClock } | null>;
};

const COMMAND = { timeoutMs: 3_000, maxOutputBytes: 20_000 };
const DEADLINE_MS = 4_000;
const HTTP_MS = 5_000;
/** Resolution of the Date header: whole seconds. */
const HEADER_STEP_MS = 1_000;
const { clock_warn_ms: WARN_MS, clock_fail_ms: FAIL_MS } = DEFAULT_LIMITS;
const MS_PER_SECOND = 1_000;
const CONFIRM = 'set the clock; if it is right, run the command clock confirm of this process';
const REMEDY = 'apt install systemd-timesyncd; timedatectl set-ntp true';

export async function readClockFacts(options: {
  clock: Clock;
  runCommand: RunCommand;
  /** URL whose Date header the clock is compared with. */
  timeFrom: string | null;
  /** Home of the process whose stored time is read. */
  home: string;
}): Promise<ClockFacts> {
  const { clock, runCommand, timeFrom, home } = options;
  const [synchronised, observed, stored] = await Promise.all([
    observe(clock, DEADLINE_MS, () => isSynchronised(runCommand)),
    timeFrom === null ? null : observe(clock, HTTP_MS, () => skewTo(clock, timeFrom)),
    observe(clock, DEADLINE_MS, async () => {
      const found = readStoredClock(home);
      return found === null ? null : { nowMs: clock.now(), clock: found };
    }),
  ]);
  const skew = observed === null || timeFrom === null ? null : { url: timeFrom, observed };
  return { synchronised, skew, stored };
}

/**
 * Returns true if the clock is synchronised. timedatectl reports the kernel's flag, whichever program sets the clock;
 * chronyc is used on hosts without systemd.
 */
async function isSynchronised(runCommand: RunCommand): Promise<boolean> {
  const run = (program: string, ...args: string[]) =>
    runCommand(program, args, COMMAND).catch(() => null);
  const systemd = await run('timedatectl', 'show', '-p', 'NTPSynchronized', '--value');
  const answer = systemd?.stdout.trim();
  if (answer === 'yes' || answer === 'no') return answer === 'yes';
  const chrony = await run('chronyc', '-n', 'tracking');
  const leap = /^Leap status\s*:\s*(.+)$/m.exec(chrony?.stdout ?? '')?.[1];
  if (leap !== undefined) return leap !== 'Not synchronised';
  throw new Error('neither timedatectl nor chronyc answers');
}

async function skewTo(clock: Clock, url: string): Promise<{ ms: number; withinMs: number }> {
  const beganMs = clock.now();
  const signal = clock.deadline(HTTP_MS);
  const response = await fetch(url, { method: 'HEAD', signal });
  const tookMs = clock.now() - beganMs;
  const theirs = parseHttpDate(response.headers.get('date') ?? '');
  if (theirs === null) throw new Error('the answer has no Date header');
  const middle = beganMs + tookMs / 2;
  return { ms: middle - (theirs + HEADER_STEP_MS / 2), withinMs: (tookMs + HEADER_STEP_MS) / 2 };
}

export const CLOCK_CHECKS: readonly DoctorCheck<ClockFacts>[] = [
  {
    id: 'clock-sync',
    detects: 'a clock that NTP does not synchronise',
    required: 'NTP synchronises the clock',
    judge({ synchronised, skew }) {
      if ('problem' in synchronised) {
        const measured = `NTP synchronisation cannot be read: ${synchronised.problem}`;
        // If the clock can be compared with another one, clock-skew detects the fault.
        return skew === null
          ? unread(
              synchronised,
              measured,
              'compare with another clock: doctor --time-from https://CENTRAL-API/',
            )
          : unread(synchronised, measured);
      }
      if (synchronised.value) return ok('NTP synchronises the clock');
      return warn(
        'NTP does not synchronise the clock: once it has drifted, every command is rejected',
        REMEDY,
      );
    },
  },
  {
    id: 'clock-skew',
    detects: 'a clock that differs from the marketplace’s',
    required: `at most ${WARN_MS / MS_PER_SECOND} s from the clock of the central API; from ${FAIL_MS / MS_PER_SECOND} s on, commands are rejected`,
    judge({ skew }) {
      if (skew === null) {
        return unknown('no other clock to compare with', 'doctor --time-from https://CENTRAL-API/');
      }
      const { url, observed } = skew;
      if ('problem' in observed)
        return unread(observed, `${url} did not answer: ${observed.problem}`);
      const { ms, withinMs } = observed.value;
      const seconds = (value: number) => (value / MS_PER_SECOND).toFixed(1);
      const measured = `the clock is ${seconds(ms)} s (± ${seconds(withinMs)} s) ahead of ${url}`;
      const atLeastMs = Math.max(0, Math.abs(ms) - withinMs);
      if (atLeastMs > FAIL_MS) return fail(`${measured}: every command is rejected`, REMEDY);
      return atLeastMs > WARN_MS ? warn(measured, REMEDY) : ok(measured);
    },
  },
  {
    id: 'clock-trust',
    detects: 'a clock that jumped or is far from the last stored time',
    required: 'the process trusts the clock of the host',
    judge({ stored }) {
      if ('problem' in stored)
        return unread(stored, `the stored time cannot be read: ${stored.problem}`);
      if (stored.value === null) return ok('the process has not stored its time yet');
      const { nowMs, clock } = stored.value;
      if (clock.suspicion !== null) {
        const measured = `${SUSPICION_TEXTS[clock.suspicion]}: deletions, expiries, schedules and verdicts are suspended`;
        return fail(measured, CONFIRM);
      }
      if (nowMs < clock.timeMs - BELIEVED_STEP_MS) {
        return fail('the clock is before the time that the process stored last', CONFIRM);
      }
      return ok('the process trusts the clock');
    },
  },
];
