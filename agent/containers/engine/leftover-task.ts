/**
 * Ends tasks that the engine lost. An engine that is killed during a start may leave a task in containerd that runs on
 * and prevents any later start of its container.
 */
import { readdir, readFile } from 'node:fs/promises';

/** Ends the container's task in the runtime. Returns true if there was one. */
export type EndLeftoverTask = (containerId: string) => Promise<boolean>;

const SHIM = /^containerd-shim/;
const FULL_ID = /^[0-9a-f]{64}$/;

/**
 * Kills the task's shim process, which has the container's id on its command line; containerd then removes the task's
 * processes. Call only for a container of this agent that the engine reports as stopped. Has no effect on a host that
 * hides other users' processes.
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
  // The process may have ended.
  const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  const [program = '', ...options] = line.split('\0');
  const name = program.slice(program.lastIndexOf('/') + 1);
  return SHIM.test(name) && options[options.indexOf('-id') + 1] === containerId;
}
