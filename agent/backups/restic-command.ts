/**
 * restic's command line and environment, and its installed version. It runs at low priority, with bounded
 * memory.
 */

import { MAX_NAME_CHARS } from '#shared/api/agent/bounds.ts';
import { type RepositoryAccess, repositoryVariables } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { type Jail, jailCommand } from './jail.ts';

/** Limit for restic's memory, bytes; restic needs less even for terabytes. */
const MEMORY_CAP_BYTES = 1024 * 1024 * 1024;
/** Soft memory limit of restic (GOMEMLIMIT): above it, Go's garbage collector runs more often. */
const MEMORY_AIM = '256MiB';
const NICE = '10';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Script that joins the groups in its parameters; if a group no longer exists, restic still runs. */
const ENTER_GROUPS = `n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 2>/dev/null >"$1"; shift; n=$((n-1)); done; exec "$@"`;

/**
 * Returns the command line. `jail` requires root; without it restic reads with the permissions of its user.
 * `procsFiles`: see `CgroupMembership`.
 */
export function resticCommand(
  program: string,
  args: readonly string[],
  jail: Jail | null,
  procsFiles: readonly string[],
): [string, ...string[]] {
  const join =
    procsFiles.length === 0
      ? []
      : ['sh', '-c', ENTER_GROUPS, 'sh', String(procsFiles.length), ...procsFiles];
  const enter = jail === null ? [] : jailCommand(jail);
  return [
    // The kernel kills restic when the agent dies.
    ...(['setpriv', '--pdeathsig', 'KILL'] as const),
    ...join,
    ...['nice', '-n', NICE, 'ionice', '-t', '-c', '3'],
    ...['prlimit', `--data=${MEMORY_CAP_BYTES}`, '--core=0'],
    ...enter,
    program,
    ...args,
  ];
}

/**
 * Returns restic's environment, the only place where secrets are passed. restic uses all cores only if pods have
 * priority on each core. Commands run with `--no-cache`, so that no renter data remains on the host; memory use is the
 * same.
 */
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

/** Returns the values that must not appear in a log line. */
export function secretsOf({ password, environment }: RepositoryAccess): string[] {
  return [password, ...Object.values(environment)].filter((secret) => secret.length >= 4);
}

const FRESH_MS = 600_000;
const RUN = { timeoutMs: 2_000, maxOutputBytes: 4_096 };

/** Resolves with null if restic cannot run on this host. */
export type ReadResticVersion = () => Promise<string | null>;

export function createResticVersion(deps: {
  clock: Clock;
  runCommand: RunCommand;
  /** Name or path of the program. */
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
