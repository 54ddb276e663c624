/**
 * Finds the files that changed while a backup read them. After the backup, it lists the files whose inode has changed
 * since the start, and compares them with the snapshot. A process in a pod can set a file's modification time, but not
 * its inode's.
 */
import type { FileList } from '#shared/api/agent/operations.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { createFileList } from './file-list.ts';
import { type Jail, jailCommand } from './jail.ts';
import type { ListedNode } from './restic-output.ts';

/** Bounds of the list of candidates; beyond them the result is unknown. */
const FIND = { timeoutMs: 30 * 60_000, maxOutputBytes: 32 * 1024 * 1024 };
/** Candidates that are listed by their paths; more are found in a listing of the whole snapshot. */
const MOST_PATHS = 200;
const MOST_PATH_CHARS = 32_000;
const MS_PER_SECOND = 1_000;
const NANOS_PER_MS = 1_000_000n;

/** Time of the last inode change in nanoseconds, by path in the snapshot. */
export type Candidates = ReadonlyMap<string, bigint>;

/**
 * Returns the files below `name` whose inode has changed since `sinceMs`. Null if they cannot be listed:
 * without root, or beyond 30 minutes or 32 MiB of paths.
 */
export async function findCandidates(
  { jail, name }: { jail: Jail; name: string },
  sinceMs: number,
  runCommand: RunCommand,
): Promise<Candidates | null> {
  if (process.getuid?.() !== 0) return null;
  const since = `@${(sinceMs / MS_PER_SECOND).toFixed(3)}`;
  const find = ['find', `./${name}`, '-xdev', '-type', 'f', '-newerct', since];
  const low = ['nice', '-n', '10', 'ionice', '-t', '-c', '3'];
  const command = [...jailCommand(jail), ...low, ...find, '-printf', '%C@ %P\\0'];
  // The kernel ends it when the agent dies.
  const args = ['--pdeathsig', 'KILL', ...command];
  const { ended, exitCode, stdout } = await runCommand('setpriv', args, FIND);
  // Files that vanish during the walk cause exit status 1.
  if (ended !== null || exitCode === null || exitCode > 1) return null;
  return new Map(stdout.split('\0').flatMap((line) => candidateIn(line, name)));
}

function candidateIn(line: string, name: string): [string, bigint][] {
  const [, seconds, fraction = '', path] = /^(\d+)(?:\.(\d+))? (.*)$/s.exec(line) ?? [];
  if (seconds === undefined || path === undefined) return [];
  const nanos = BigInt(seconds + fraction.slice(0, 9).padEnd(9, '0'));
  return [[path === '' ? `/${name}` : `/${name}/${path}`, nanos]];
}

/**
 * Compares the files of a snapshot with the candidates. `paths`: entries of the snapshot to list, all if empty.
 * `podPathOf` converts a path in the snapshot to one in the pod.
 */
export function createChangedFiles(
  candidates: Candidates,
  podPathOf: (path: string) => string,
): { paths: readonly string[]; add(node: ListedNode): void; found(): FileList } {
  const changed = createFileList();
  return {
    paths: pathsToList(candidates),
    add({ type, path, ctime }) {
      const nowNanos = type === 'file' ? candidates.get(path) : undefined;
      if (nowNanos === undefined || nowNanos === nanosOf(ctime)) return;
      changed.add(podPathOf(path));
    },
    found: () => changed.list,
  };
}

/** Returns the paths of a few candidates, the root folder for none, and no path if a command line cannot hold them. */
function pathsToList(candidates: Candidates): string[] {
  if (candidates.size === 0) return ['/'];
  if (candidates.size > MOST_PATHS) return [];
  const paths = [...candidates.keys()];
  return paths.join().length > MOST_PATH_CHARS ? [] : paths;
}

/** Converts a time that restic printed to nanoseconds; null if the text is not a valid time. */
function nanosOf(time: string): bigint | null {
  const ms = parseIsoTime(time.replace(/\.\d+/, ''));
  if (ms === null) return null;
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? '';
  return BigInt(ms) * NANOS_PER_MS + BigInt(fraction.slice(0, 9).padEnd(9, '0'));
}
