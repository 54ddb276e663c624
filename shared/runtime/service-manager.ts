/**
 * Reports the state of this process to systemd (sd_notify(3)) and feeds its watchdog while the process is healthy. Node
 * has no Unix datagram sockets, so systemd's own `systemd-notify` sends the messages; the units allow that with
 * NotifyAccess=all. Without systemd nothing is sent.
 */
import { type Clock, withDeadline } from './clock.ts';
import { messageOf } from './errors.ts';
import { type Liveness, type LivenessLimits, livenessProblem, livenessStatus } from './liveness.ts';
import type { Log } from './log.ts';
import type { RunCommand } from './run-command.ts';

export type ServiceManager = {
  /** Reports that the process accepts requests, and starts to feed the watchdog if there is one. */
  ready(probe: LivenessProbe): Promise<void>;
  /** Reports that the process is stopping, and stops feeding the watchdog. */
  stopping(): Promise<void>;
};

export type LivenessProbe = {
  /** A rejection counts as a problem. */
  check(): Promise<Liveness>;
  limits: LivenessLimits;
};

/** Time limit of `systemd-notify`, which waits until systemd has read the message. */
export const NOTIFY_TIMEOUT_MS = 10_000;
const COMMAND_LIMITS = { timeoutMs: NOTIFY_TIMEOUT_MS, maxOutputBytes: 4_096 };
/** Time limit of a check; a check that takes longer counts as a problem. */
export const PROBE_TIMEOUT_MS = 8_000;
/** Interval between checks while there is a problem, which may pass before the watchdog expires. */
const RECHECK_MS = 1_000;
/**
 * Fraction of the watchdog's timeout between two checks; the remaining time allows for a slow check and a slow systemd.
 */
export const WATCHDOG_FRACTION = 1 / 3;
const US_PER_MS = 1_000;
/** Maximum length of a message, because `systemctl status` shows a single line. */
const MAX_LINE_CHARS = 200;

type Notify = (lines: readonly string[]) => Promise<void>;

/**
 * Reads the variables that systemd sets and removes them from `environment`, so that no child process sends
 * notifications in our place. `pid`: id of this process; a watchdog for another process is not fed.
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
  const watchdogMs = watchdogTimeout(environment, options.pid);
  const { PATH = '' } = environment;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete environment[name];
  let watchdog: { stop(): Promise<void> } | null = null;

  async function notify(lines: readonly string[]): Promise<void> {
    if (socket === '') return;
    const sent = lines.map((line) => line.replaceAll(/\s+/g, ' ').slice(0, MAX_LINE_CHARS));
    const env = { PATH, NOTIFY_SOCKET: socket };
    try {
      const result = await runCommand('systemd-notify', sent, { ...COMMAND_LIMITS, env });
      if (result.exitCode !== 0)
        log.warn({ detail: result.stderr.trim() }, 'systemd-notify failed');
    } catch (error) {
      log.warn({ detail: messageOf(error) }, 'systemd-notify failed to start');
    }
  }

  return {
    async ready(probe) {
      await notify(['READY=1', 'STATUS=serving']);
      if (socket === '' || watchdogMs === null) return;
      const intervalMs = watchdogMs * WATCHDOG_FRACTION;
      watchdog = startWatchdog({ probe, intervalMs, notify, clock, log });
    },
    async stopping() {
      await watchdog?.stop();
      await notify(['STOPPING=1', 'STATUS=stopping']);
    },
  };
}

/** Returns the watchdog's timeout in milliseconds, or null if it is not for this process (sd_watchdog_enabled(3)). */
function watchdogTimeout(
  environment: Record<string, string | undefined>,
  pid: number,
): number | null {
  const us = Number(environment['WATCHDOG_USEC']);
  const isOurs = Number(environment['WATCHDOG_PID'] ?? pid) === pid;
  return isOurs && Number.isSafeInteger(us) && us > 0 ? us / US_PER_MS : null;
}

/**
 * Checks liveness every `intervalMs` and feeds the watchdog only while there is no problem. `notify` must not reject.
 */
export function startWatchdog(options: {
  probe: LivenessProbe;
  intervalMs: number;
  notify: Notify;
  clock: Clock;
  log: Log;
}): { stop(): Promise<void> } {
  const { probe, notify, clock, log } = options;
  const stopping = new AbortController();
  let lastProblem: string | null = null;

  async function check(lagMs: number): Promise<{ problem: string | null; status: string }> {
    try {
      const liveness = await withDeadline(clock, PROBE_TIMEOUT_MS, probe.check());
      const problem = livenessProblem(liveness, lagMs, probe.limits);
      return { problem, status: problem ?? livenessStatus(liveness) };
    } catch (error) {
      const problem = `the liveness check failed: ${messageOf(error)}`;
      return { problem, status: problem };
    }
  }

  async function checkAndNotify(lagMs: number): Promise<void> {
    const { problem, status } = await check(lagMs);
    if (problem !== null && problem !== lastProblem) {
      log.error({ detail: problem }, 'unhealthy; systemd restarts this process unless it recovers');
    }
    if (problem === null && lastProblem !== null) log.info('healthy again');
    lastProblem = problem;
    await notify(problem === null ? ['WATCHDOG=1', `STATUS=${status}`] : [`STATUS=${status}`]);
  }

  async function repeat(): Promise<void> {
    for (;;) {
      const pauseMs = lastProblem === null ? options.intervalMs : RECHECK_MS;
      const startedMs = clock.monotonicMs();
      await clock.sleep(pauseMs, stopping.signal).catch(() => undefined);
      if (stopping.signal.aborted) return;
      await checkAndNotify(clock.monotonicMs() - startedMs - pauseMs);
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
