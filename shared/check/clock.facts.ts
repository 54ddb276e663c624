/** Whether the host's clock is kept right, and how far it is from somebody else's. */
import { type Clock, parseHttpDate } from '../runtime/clock.ts';
import type { RunCommand } from '../runtime/run-command.ts';
import { type Told, tell } from './told.ts';

export type ClockFacts = {
  synchronised: Told<boolean>;
  /** Ours minus theirs, milliseconds, as exact as `withinMs`; null when nobody was to be asked. */
  skew: { url: string; told: Told<{ ms: number; withinMs: number }> } | null;
};

const COMMAND = { timeoutMs: 3_000, maxOutputBytes: 20_000 };
const DEADLINE_MS = 4_000;
const HTTP_MS = 5_000;
/** The Date header names whole seconds. */
const HEADER_STEP_MS = 1_000;

export async function readClockFacts(options: {
  clock: Clock;
  runCommand: RunCommand;
  /** Whose Date header to compare with. */
  timeFrom: string | null;
}): Promise<ClockFacts> {
  const { clock, runCommand, timeFrom } = options;
  const [synchronised, skew] = await Promise.all([
    tell(clock, DEADLINE_MS, () => isSynchronised(runCommand)),
    timeFrom === null ? null : tell(clock, HTTP_MS, () => skewTo(clock, timeFrom)),
  ]);
  return {
    synchronised,
    skew: skew === null || timeFrom === null ? null : { url: timeFrom, told: skew },
  };
}

/** timedatectl tells the kernel's flag, whoever keeps the clock; chrony is asked where systemd is not. */
async function isSynchronised(runCommand: RunCommand): Promise<boolean> {
  const ask = (program: string, ...args: string[]) =>
    runCommand(program, args, COMMAND).catch(() => null);
  const systemd = await ask('timedatectl', 'show', '-p', 'NTPSynchronized', '--value');
  const answer = systemd?.stdout.trim();
  if (answer === 'yes' || answer === 'no') return answer === 'yes';
  const chrony = await ask('chronyc', '-n', 'tracking');
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
  if (theirs === null) throw new Error('the answer carries no date');
  const middle = beganMs + tookMs / 2;
  return { ms: middle - (theirs + HEADER_STEP_MS / 2), withinMs: (tookMs + HEADER_STEP_MS) / 2 };
}
