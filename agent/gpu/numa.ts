/** The memory nodes of this host: which processors and how much memory each has. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export type NumaNode = {
  id: number;
  /** `0-19,40-59` */
  cpus: string;
  memoryBytes: number;
};

const NODES = '/sys/devices/system/node';
const MAX_NODES = 64;
const BYTES_PER_KIB = 1_024;

/** By number; empty where the kernel does not tell. */
export async function readNumaNodes(folder: string = NODES): Promise<NumaNode[]> {
  const names = await readdir(folder).catch(() => []);
  const ids = names.flatMap((name) => /^node(\d{1,4})$/.exec(name)?.[1] ?? []).map(Number);
  const nodes = ids
    .toSorted((a, b) => a - b)
    .slice(0, MAX_NODES)
    .map(async (id) => {
      const file = (name: string) =>
        readFile(join(folder, `node${id}`, name), 'utf8').catch(() => '');
      const [cpus, memory] = await Promise.all([file('cpulist'), file('meminfo')]);
      const kib = /MemTotal: +(\d+) kB/.exec(memory)?.[1] ?? '0';
      return { id, cpus: cpus.trim(), memoryBytes: Number(kib) * BYTES_PER_KIB };
    });
  return Promise.all(nodes);
}
