/** Whose the processes on a leased card are, by their control groups (validator reference 5, gpu_side_use). */
import { cgroupOf, type ProcFiles } from '../access/exec/container-process.ts';

/**
 * How many of `pids` are of another than the container. Null where nobody holds the card or nothing is known; what
 * has just ended, or is hidden from the agent, is nobody's.
 */
export function countOutside(
  files: ProcFiles,
  { pids, containerId }: { pids: readonly number[] | null; containerId: string | null },
): number | null {
  if (pids === null || containerId === null) return null;
  const groups = pids.map((pid) => cgroupOf(files, pid)).filter((group) => group !== '');
  return groups.filter((group) => !group.includes(containerId)).length;
}
