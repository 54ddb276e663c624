/** The host's memory as the kernel keeps it below /sys, beside what /proc/meminfo says. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Blocks of 128 MiB, the smallest there are, of a host with 4 TiB. */
const MAX_BLOCKS = 32_768;
const TOGETHER = 128;
const BYTES_PER_KIB = 1_024;

/**
 * `folder` is /sys/devices/system. The larger of two sums, for either may be short: nodes do not count memory
 * that was plugged in while the host ran, blocks not what firmware hides. Rejects where nothing tells, or a
 * kernel with blocks does not let them be read.
 */
export async function presentMemoryKib(folder: string): Promise<number> {
  const [nodes, blocks] = await Promise.all([
    nodeMemoryKib(join(folder, 'node')),
    onlineBlocksKib(join(folder, 'memory')),
  ]);
  return Math.max(nodes, blocks);
}

async function nodeMemoryKib(folder: string): Promise<number> {
  const nodes = (await readdir(folder)).filter((name) => /^node\d+$/.test(name));
  if (nodes.length === 0) throw new Error('no NUMA nodes');
  const texts = await Promise.all(
    nodes.map((node) => readFile(join(folder, node, 'meminfo'), 'utf8')),
  );
  return texts.reduce((sum, text) => sum + Number(/MemTotal: +(\d+) kB/.exec(text)?.[1]), 0);
}

/** Nothing where the kernel cannot plug memory: then the nodes know all of it. */
async function onlineBlocksKib(folder: string): Promise<number> {
  const blocks = await readdir(folder).then(
    (names) => names.filter((name) => /^memory\d+$/.test(name)),
    () => [],
  );
  if (blocks.length === 0) return 0;
  if (blocks.length > MAX_BLOCKS) throw new Error('more blocks of memory than are read');
  const blockBytes = Number.parseInt(await readFile(join(folder, 'block_size_bytes'), 'utf8'), 16);
  let online = 0;
  for (let from = 0; from < blocks.length; from += TOGETHER) {
    const states = await Promise.all(
      blocks
        .slice(from, from + TOGETHER)
        .map((block) => readFile(join(folder, block, 'state'), 'utf8')),
    );
    online += states.filter((state) => state.trim() === 'online').length;
  }
  return Math.floor((online * blockBytes) / BYTES_PER_KIB);
}
