/** Shells that an agent or gateway which was killed has left: the engine goes on running them for nobody. */
import {
  type ContainerProcess,
  hangUp,
  isInContainer,
  PROC,
  type ProcFiles,
  parentOf,
} from './container-process.ts';

/** Set in every terminal's shell, to the executor's id; inherited by what is started there. */
export const TERMINAL_MARK = 'PODWRIGHT_TERMINAL';
/** Set in every SSH session, to the pod's id; inherited likewise. */
export const SESSION_MARK = 'PODWRIGHT_SESSION';

/** The variable and the value by which a shell is known. */
export type Mark = { name: typeof TERMINAL_MARK | typeof SESSION_MARK; value: string };

/**
 * Hangs up on them, so that they end with what runs in them; what ignores that is its pod's own. For the start
 * only, when there is none that anybody could be using. `containerIds`: those of our running pods. The number
 * of them.
 */
export function hangUpLeftovers(marks: readonly Mark[], containerIds: readonly string[]): number {
  const left = leftShells(PROC, marks, containerIds);
  for (const shell of left) hangUp(shell);
  return left.length;
}

/**
 * Marked processes whose parent is outside of the container: those that the engine was asked to run. What the
 * renter started from a shell and detached has a parent inside.
 */
export function leftShells(
  files: ProcFiles,
  marks: readonly Mark[],
  containerIds: readonly string[],
): ContainerProcess[] {
  const wanted = new Set(marks.map(({ name, value }) => `${name}=${value}`));
  return files
    .list()
    .map(Number)
    .filter(
      (pid) => Number.isInteger(pid) && environmentOf(files, pid).some((each) => wanted.has(each)),
    )
    .flatMap((pid) => {
      const containerId = containerIds.find((id) => isInContainer(files, pid, id));
      const isOurs =
        containerId !== undefined && !isInContainer(files, parentOf(files, pid), containerId);
      return isOurs ? [{ pid, containerId }] : [];
    });
}

function environmentOf(files: ProcFiles, pid: number): string[] {
  try {
    return files.read(`${pid}/environ`).split('\0');
  } catch {
    return [];
  }
}
