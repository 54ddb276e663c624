/** Parses `nvidia-smi topo -m`: links between cards, and their CPU and NUMA affinity. Pure; accepts any text. */
import type { GpuTopology } from '#shared/api/agent/inventory.ts';

export const TOPOLOGY_ARGS = ['topo', '-m'] as const;

const MAX_CARDS = 64;
const LINK = /^(?:X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS)$/;
const CPU_LIST = /^\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?){0,80}$/;
/** Escape sequences with which nvidia-smi underlines the header, even without a terminal. */
const STYLES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g');

/** Returns the cards in order of their index; null if the text has no matrix. */
export function parseTopology(
  stdout: string,
  cards: readonly { index: number; uuid: string }[],
): GpuTopology | null {
  const lines = stdout.replace(STYLES, '').split('\n');
  const start = lines.findIndex((line) => /^\s+GPU\d/.test(line));
  if (start < 0) return null;
  const header = cellsOf(lines[start] ?? '');
  const rows = new Map<string, string[]>();
  for (const line of lines.slice(start + 1)) {
    const cells = cellsOf(line);
    const [name = ''] = cells;
    if (/^GPU\d{1,3}$/.test(name) && !rows.has(name)) rows.set(name, cells);
  }
  const known = cards.slice(0, MAX_CARDS).filter(({ index }) => rows.has(`GPU${index}`));
  if (known.length === 0) return null;
  return {
    gpus: known.map(({ uuid, index }) => {
      const row = rows.get(`GPU${index}`) ?? [];
      // Columns match the header up to the affinities; the alignment after them is unreliable.
      const cell = (name: string) => row[header.indexOf(name)] ?? '';
      const [cpus, numa] = [cell('CPU Affinity'), cell('NUMA Affinity')];
      return {
        uuid,
        numa_node: /^\d{1,4}$/.test(numa) ? Number(numa) : null,
        cpus: CPU_LIST.test(cpus) ? cpus : null,
        links: known.map((other) => linkOf(cell(`GPU${other.index}`))),
      };
    }),
  };
}

function linkOf(cell: string): string {
  return LINK.test(cell) ? cell : '';
}

/** Splits a line into cells. The first is the row's name, empty in the header. */
function cellsOf(line: string): string[] {
  const cells = line.includes('\t') ? line.split('\t') : line.split(/\s{2,}/);
  return cells.map((cell) => cell.trim());
}
