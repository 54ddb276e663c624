/** The command line and environment that restic runs with: low priority, bounded memory, pods' links not followed. Pure. */

import { MAX_NAME_CHARS } from '#shared/api/agent/bounds.ts';
import { type RepositoryAccess, repositoryVariables } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';

/** A folder as restic is to see it: bound over itself in a mount namespace of its own, where the kernel follows no link. */
export type Jail = {
  folder: string;
  /** For a backup; a restore writes there. */
  readOnly: boolean;
  /** Where restic stands, in the folder or above it. */
  cwd: string;
};

/** Above what restic needs for terabytes; more means that something is wrong. */
const MEMORY_CAP_BYTES = 1024 * 1024 * 1024;
/** From here on its garbage collector works harder. */
const MEMORY_AIM = '256MiB';
const NICE = '10';
/** The jail could not be made; restic itself ends with less. */
export const JAIL_FAILED = 125;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Fixed text; folders and arguments come as its parameters. A pod works in its tree while it is read and could
 * put a link to the host's files where a folder was: `nosymfollow` makes that an error instead of a leak.
 */
const ENTER_JAIL = `{ mount --bind "$1" "$1" && mount -o "remount,bind,$2" "$1" && cd "$3"; } || exit ${JAIL_FAILED}; shift 3; exec "$@"`;

/** As many doors as its first parameter says: a group that is gone is no reason not to run. */
const ENTER_GROUPS = `n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 2>/dev/null >"$1"; shift; n=$((n-1)); done; exec "$@"`;

/** `jail` needs root; without it restic reads what its user may. `doors`: of control groups (`Seat`). */
export function resticCommand(
  program: string,
  args: readonly string[],
  jail: Jail | null,
  doors: readonly string[],
): [string, ...string[]] {
  const join =
    doors.length === 0 ? [] : ['sh', '-c', ENTER_GROUPS, 'sh', String(doors.length), ...doors];
  const enter =
    jail === null
      ? []
      : [
          ...['unshare', '--mount', '--propagation', 'private', '--', 'sh', '-c', ENTER_JAIL, 'sh'],
          ...[jail.folder, `${jail.readOnly ? 'ro' : 'rw'},nosymfollow`, jail.cwd],
        ];
  return [
    // A killed agent takes its child along.
    ...(['setpriv', '--pdeathsig', 'KILL'] as const),
    ...join,
    ...['nice', '-n', NICE, 'ionice', '-t', '-c', '3'],
    ...['prlimit', `--data=${MEMORY_CAP_BYTES}`, '--core=0'],
    ...enter,
    program,
    ...args,
  ];
}

/** All cores only where pods come first on each. Secrets travel here and nowhere else. No cache: nothing of a renter's tree stays on the host, memory is the same. */
export function resticEnvironment(
  access: RepositoryAccess,
  { home, yieldsCpu }: { home: string; yieldsCpu: boolean },
): Record<string, string> {
  return {
    PATH,
    HOME: home,
    LANG: 'C',
    ...(yieldsCpu ? {} : { GOMAXPROCS: '1' }),
    GOMEMLIMIT: MEMORY_AIM,
    GOGC: '50',
    RESTIC_PROGRESS_FPS: '2',
    ...repositoryVariables(access),
    RESTIC_PASSWORD: access.password,
  };
}

/** What must not appear in any line. */
export function secretsOf({ password, environment }: RepositoryAccess): string[] {
  return [password, ...Object.values(environment)].filter((secret) => secret.length >= 4);
}

// MERGED agent/backups/restic-command.ts: Which restic the host has, asked of the program itself and remembered for a while.
const FRESH_MS = 600_000;
const RUN = { timeoutMs: 2_000, maxOutputBytes: 4_096 };

/** Null where there is none that runs. */
export type ReadResticVersion = () => Promise<string | null>;

export function createResticVersion(deps: {
  clock: Clock;
  runCommand: RunCommand;
  /** Its name or path. */
  program: string;
}): ReadResticVersion {
  const { clock, runCommand, program } = deps;
  let known: { atMs: number; version: Promise<string | null> } | null = null;

  async function ask(): Promise<string | null> {
    try {
      const { exitCode, stdout } = await runCommand(program, ['version'], RUN);
      const [, version = ''] = /^restic (\S+)/.exec(stdout) ?? [];
      return exitCode === 0 && version !== '' ? version.slice(0, MAX_NAME_CHARS) : null;
    } catch {
      return null;
    }
  }

  return () => {
    const nowMs = clock.monotonicMs();
    if (known === null || nowMs - known.atMs >= FRESH_MS) {
      known = { atMs: nowMs, version: ask() };
    }
    return known.version;
  };
}
