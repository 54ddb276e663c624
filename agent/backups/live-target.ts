/**
 * Puts a restored tree into a running pod, at a path of a volume where nothing is. The pod may create links and files
 * meanwhile: therefore the move runs in a jail, in which the kernel follows no link, and never replaces an entry.
 */
import { lstat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { DataPlace } from './data-path.ts';
import { exists } from './durable-files.ts';
import { jailCommand } from './jail.ts';
import type { RestoreJournal } from './operation.store.ts';
import type { RunPorts } from './operation-context.ts';

const BOUNDS = { timeoutMs: 60_000, maxOutputBytes: 4_096 };

/**
 * Creates the missing folders above the target, with the owner of their parent. Removes the target if it is an empty
 * folder, and moves the tree to it unless something is there. Parameters: tree, volume, name of the target, folders
 * above it.
 */
const MOVE_IN = `from=$1 p=$2 target=$3; shift 3
for name; do
  [ -d "$p/$name" ] || { mkdir -m 755 -- "$p/$name" && chown --reference="$p" -- "$p/$name"; } || exit 1
  p=$p/$name
done
rmdir -- "$p/$target" 2>/dev/null
mv -T -n -- "$from" "$p/$target"`;

/** Returns true if the tree can be put in place while the pod runs: a new or empty folder below the root of a volume. */
export async function isLiveTarget(
  { source, live, kind }: DataPlace,
  isEmpty: boolean,
): Promise<boolean> {
  if (!('volume' in source) || process.getuid?.() !== 0) return false;
  if (live === source.volume.hostPath) return false;
  return kind === null || (isEmpty && (await lstat(live)).isDirectory());
}

/** Returns true if the tree has left the staging folder, which only its move into the pod does. */
export async function isPutLive({ is_live, step, staged }: RestoreJournal): Promise<boolean> {
  return is_live && step === 'ready' && !(await exists(staged));
}

/** Moves the tree. Returns false if something is at the target by now, or a link is on the way to it. */
export async function putLive(
  { source, live, stagingParent }: DataPlace,
  staged: string,
  { runCommand }: Pick<RunPorts, 'runCommand'>,
): Promise<boolean> {
  if (!('volume' in source)) return false;
  const { hostPath } = source.volume;
  const above = relative(hostPath, dirname(live))
    .split('/')
    .filter((name) => name !== '');
  const paths = [staged, hostPath].map((path) => relative(stagingParent, path));
  const jail = { folder: stagingParent, readOnly: false, cwd: stagingParent };
  const script = ['sh', '-c', MOVE_IN, 'sh', ...paths, relative(dirname(live), live), ...above];
  const [program, ...enter] = jailCommand(jail);
  await runCommand(program, [...enter, ...script], BOUNDS);
  return !(await exists(join(stagingParent, paths[0] ?? '')));
}
