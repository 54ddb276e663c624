/**
 * What an engine that was killed in the middle of a start may leave in its runtime: a task that it knows
 * nothing of, which runs on and keeps its container from ever being started again.
 */
import { readdir, readFile } from 'node:fs/promises';

/** Ends what the runtime has of this container; true when there was something. */
export type EndLeftoverTask = (containerId: string) => Promise<boolean>;

const SHIM = /^containerd-shim/;
const FULL_ID = /^[0-9a-f]{64}$/;

/**
 * Ends the task's supervisor, found by the container's full id on its command line; containerd sees it go
 * and clears away whatever ran under it. To be called only for a container of ours that the engine says
 * does not run. On a host that hides other processes it finds nothing.
 */
export const endLeftoverTask: EndLeftoverTask = async (containerId) => {
  if (!FULL_ID.test(containerId)) return false;
  let found = false;
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || !(await isShimOf(pid, containerId))) continue;
    process.kill(Number(pid), 'SIGKILL');
    found = true;
  }
  return found;
};

async function isShimOf(pid: string, containerId: string): Promise<boolean> {
  // A process may be gone by the time that it is looked at.
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  const [program = '', ...options] = line.split('\0');
  const name = program.slice(program.lastIndexOf('/') + 1);
  return SHIM.test(name) && options[options.indexOf('-id') + 1] === containerId;
}
