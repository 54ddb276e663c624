/**
 * What we tell systemd of ourselves (sd_notify(3)): ready, well, stopping. Node has no Unix datagram sockets, so systemd's
 * own `systemd-notify` sends for us; the units allow that with NotifyAccess=all. Without systemd nothing is sent.
 */
import { type Clock, withDeadline } from './clock.ts';
import { messageOf } from './errors.ts';
import { ailmentOf, standingOf, type VitalBounds, type Vitals } from './liveness.ts';
import type { Log } from './log.ts';
import type { RunCommand } from './run-command.ts';

export type ServiceManager = {
  /** From now on requests are taken; feeds the watchdog where there is one. */
  ready(watch: Watch): Promise<void>;
  /** The end has begun: the watchdog is fed no more. */
  stopping(): Promise<void>;
};

/** It waits until the service manager has read what it sent. */
export const TOLD_WITHIN_MS = 10_000;
const BOUNDS = { timeoutMs: TOLD_WITHIN_MS, maxOutputBytes: 4_096 };
/** Of the time until the watchdog bites: so that a slow look and a slow service manager after it are in time, too. */
export const FED_AT = 1 / 3;
const US_PER_MS = 1_000;
/** Texts are one line, and short: they are shown by `systemctl status`. */
const MAX_LINE_CHARS = 200;

/**
 * By the variables that systemd sets; they are taken out of `environment`, so that no child speaks for us. `pid` is ours:
 * a watchdog that is meant for another process is left alone.
 */
export function createServiceManager(options: {
  environment: Record<string, string | undefined>;
  pid: number;
  runCommand: RunCommand;
  clock: Clock;
  log: Log;
}): ServiceManager {
  const { environment, runCommand, clock, log } = options;
  const socket = environment['NOTIFY_SOCKET'] ?? '';
  const watchdogMs = watchdogOf(environment, options.pid);
  const { PATH = '' } = environment;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete environment[name];
  let watchdog: { stop(): Promise<void> } | null = null;

  async function tell(lines: readonly string[]): Promise<void> {
    if (socket === '') return;
    const sent = lines.map((line) => line.replaceAll(/\s+/g, ' ').slice(0, MAX_LINE_CHARS));
    const env = { PATH, NOTIFY_SOCKET: socket };
    try {
      const { exitCode, stderr } = await runCommand('systemd-notify', sent, { ...BOUNDS, env });
      if (exitCode !== 0) log.warn({ detail: stderr.trim() }, 'systemd-notify failed');
    } catch (error) {
      log.warn({ detail: messageOf(error) }, 'systemd-notify could not be run');
    }
  }

  return {
    async ready(watch) {
      await tell(['READY=1', 'STATUS=serving']);
      if (socket === '' || watchdogMs === null) return;
      watchdog = startWatchdog({ watch, intervalMs: watchdogMs * FED_AT, tell, clock, log });
    },
    async stopping() {
      await watchdog?.stop();
      await tell(['STOPPING=1', 'STATUS=stopping']);
    },
  };
}

/** Milliseconds until it bites; null where there is none for us (sd_watchdog_enabled(3)). */
function watchdogOf(environment: Record<string, string | undefined>, pid: number): number | null {
  const us = Number(environment['WATCHDOG_USEC']);
  const isOurs = Number(environment['WATCHDOG_PID'] ?? pid) === pid;
  return isOurs && Number.isSafeInteger(us) && us > 0 ? us / US_PER_MS : null;
}

// MERGED shared/runtime/service-manager.ts: Feeds the service manager's watchdog for as long as the process is found well, and no longer.
export type Watch = {
  /** Looks at the process; a rejection counts as an ailment. */
  look(): Promise<Vitals>;
  bounds: VitalBounds;
};

/** A look that takes longer is an ailment: whatever it asks has deadlines of its own. */
export const LOOK_WITHIN_MS = 8_000;
/** An ailment may pass before the watchdog bites. */
const LOOK_AGAIN_MS = 1_000;

/** `tell` gets the lines for the service manager every `intervalMs`, and must not reject. */
export function startWatchdog(options: {
  watch: Watch;
  intervalMs: number;
  tell(lines: readonly string[]): Promise<void>;
  clock: Clock;
  log: Log;
}): { stop(): Promise<void> } {
  const { watch, tell, clock, log } = options;
  const stopping = new AbortController();
  let ailment: string | null = null;

  /** What is wrong now, and what to show. */
  async function examine(lagMs: number): Promise<{ ill: string | null; shown: string }> {
    try {
      const vitals = await withDeadline(clock, LOOK_WITHIN_MS, watch.look());
      const ill = ailmentOf(vitals, lagMs, watch.bounds);
      return { ill, shown: ill ?? standingOf(vitals) };
    } catch (error) {
      const ill = `it could not be looked at: ${messageOf(error)}`;
      return { ill, shown: ill };
    }
  }

  async function lookOnce(lagMs: number): Promise<void> {
    const { ill, shown } = await examine(lagMs);
    if (ill !== null && ill !== ailment) {
      log.error(
        { detail: ill },
        'not well; the service manager is to restart this unless it passes',
      );
    }
    if (ill === null && ailment !== null) log.info('well again');
    ailment = ill;
    const status = `STATUS=${shown}`;
    await tell(ill === null ? ['WATCHDOG=1', status] : [status]);
  }

  async function repeat(): Promise<void> {
    for (;;) {
      const pauseMs = ailment === null ? options.intervalMs : LOOK_AGAIN_MS;
      const sleptMs = clock.monotonicMs();
      await clock.sleep(pauseMs, stopping.signal).catch(() => undefined);
      if (stopping.signal.aborted) return;
      await lookOnce(clock.monotonicMs() - sleptMs - pauseMs);
    }
  }

  const ended = repeat();
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
