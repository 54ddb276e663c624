/** Kernel, memory and rights of this process. */

import { existsSync } from 'node:fs';
import { release, totalmem } from 'node:os';

export type HostFacts = {
  kernel: string;
  memoryBytes: number;
  reserveBytes: number;
  root: boolean;
};

const SYSTEMD = '/run/systemd/system';

export function readHostFacts(reserveBytes: number): HostFacts {
  const root = process.getuid?.() === 0;
  return { kernel: release(), memoryBytes: totalmem(), reserveBytes, root };
}

/** Whether systemd is the service manager here. */
export function hasSystemd(): boolean {
  return existsSync(SYSTEMD);
}
