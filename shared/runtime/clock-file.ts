/** The stored time of a process in its home, and the command with which an operator reads and confirms it. */
import { readFileSync, rmSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { type Clock, naiveUtc } from './clock.ts';
import { CLOCK_SUSPICIONS, type ClockSuspicion } from './clock-guard.ts';
import { ConfigError } from './config.ts';
import { messageOf } from './errors.ts';
import { readPrivateFile, replacePrivateFile } from './files.ts';
import {
  type ClockRecords,
  createGuardedClock,
  type GuardedClock,
  type HostBoot,
} from './guarded-clock.ts';
import type { Log } from './log.ts';
import type { Random } from './random.ts';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';
const MS_PER_SECOND = 1_000;

const StoredClock = z.object({
  timeMs: z.number(),
  uptimeMs: z.number().nullable(),
  bootId: z.string().nullable(),
  suspicion: z.enum(CLOCK_SUSPICIONS).nullable(),
  wallMs: z.number(),
  peerMs: z.number().nullable(),
});
/** Content of the file: the time that the process uses, and the state of its clock at that time. */
export type StoredClock = z.output<typeof StoredClock>;

const recordFile = (home: string) => join(home, 'clock.json');
const confirmationFile = (home: string) => join(home, 'clock.confirmed');

/** Returns null if there is no file. Throws an error with the file's name if it is damaged. */
export function readStoredClock(home: string): StoredClock | null {
  const bytes = readPrivateFile(recordFile(home));
  if (bytes === null) return null;
  try {
    return StoredClock.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch (cause) {
    const message = `${recordFile(home)} is damaged; the running process replaces it within a minute`;
    throw new Error(message, { cause });
  }
}

/** A damaged file counts as absent, and is replaced. */
export function clockRecordsIn(
  home: string,
  { random, log }: { random: Random; log: Log },
): ClockRecords {
  return {
    read() {
      try {
        return readStoredClock(home);
      } catch (error) {
        log.warn(
          { file: recordFile(home), detail: messageOf(error) },
          'the stored time is damaged',
        );
        return null;
      }
    },
    write: (record) => replacePrivateFile(recordFile(home), JSON.stringify(record), random),
    takeConfirmation() {
      if (readPrivateFile(confirmationFile(home)) === null) return false;
      rmSync(confirmationFile(home), { force: true });
      return true;
    },
  };
}

/** Returns the readers of the host's uptime and boot id. */
export function hostBoot(): HostBoot {
  return { uptimeMs: () => uptime() * MS_PER_SECOND, bootId: readBootId() };
}

function readBootId(): string | null {
  try {
    return readFileSync(BOOT_ID, 'utf8').trim();
  } catch {
    return null;
  }
}

/** Opens a clock that follows no implausible jump of the host's clock, compared with the time stored in `home`. */
export function openGuardedClock(
  home: string,
  ports: { clock: Clock; random: Random; log: Log },
): GuardedClock {
  const records = clockRecordsIn(home, ports);
  return createGuardedClock({ ...ports, boot: hostBoot(), records });
}

/** Description of each suspicion, as a clause. */
export const SUSPICION_TEXTS: Record<ClockSuspicion, string> = {
  jumped: 'the clock of the host jumped',
  before_record: 'the clock of the host is before the last stored time',
  far_after_record: 'the clock of the host is more than 3 days after the last stored time',
  peer_differs: 'another process of the marketplace has another time',
};

/**
 * Runs `clock` or `clock confirm` for the process with this home, and returns the text to print. Throws ConfigError for
 * other arguments.
 */
export function runClockCommand(args: readonly string[], home: string, random: Random): string {
  const [action, ...rest] = args;
  if (rest.length > 0 || (action !== undefined && action !== 'confirm')) {
    throw new ConfigError('usage: clock | clock confirm');
  }
  if (action === 'confirm') {
    replacePrivateFile(confirmationFile(home), '', random);
    return 'The process will trust the clock of this host in a few seconds. Run the command clock to see the result.\n';
  }
  const stored = readStoredClock(home);
  if (stored === null) return `No process has stored its time in ${home}.\n`;
  const { suspicion, timeMs, wallMs } = stored;
  const state = suspicion === null ? 'trusted' : `suspect: ${SUSPICION_TEXTS[suspicion]}`;
  return `clock: ${state}\nstored time: ${naiveUtc(timeMs)}\nhost's clock then: ${naiveUtc(wallMs)}\n`;
}
