/** Figures of control groups, as the kernel's documents of both versions write them (cgroup-v1/, cgroup-v2.rst). Pure. */

const NANOS_PER_MICRO = 1_000;

/** Of `cpuacct.usage` (version 1) or `cpu.stat`, in nanoseconds. Null where it is not told. */
export function cpuNanosIn(text: string, version: 1 | 2): number | null {
  if (version === 1) return wholeNumber(text.trim());
  const micros = keyed(text).get('usage_usec');
  return micros === undefined ? null : micros * NANOS_PER_MICRO;
}

export type MemoryParts = {
  /** Kept of files that nobody has used for a while. */
  inactiveFileBytes: number;
  /** Of no file; null where it is not told. */
  residentBytes: number | null;
  /** All that is kept of files; null where it is not told. */
  cacheBytes: number | null;
};

/** Of `memory.stat`, the groups below included: version 1 has figures of its own for those. */
export function memoryPartsIn(text: string, version: 1 | 2): MemoryParts {
  const figures = keyed(text);
  const first = (...names: string[]) =>
    names.map((name) => figures.get(name)).find((figure) => figure !== undefined) ?? null;
  return version === 1
    ? {
        inactiveFileBytes: first('total_inactive_file', 'inactive_file') ?? 0,
        residentBytes: first('total_rss', 'rss'),
        cacheBytes: first('total_cache', 'cache'),
      }
    : {
        inactiveFileBytes: first('inactive_file') ?? 0,
        residentBytes: first('anon'),
        cacheBytes: first('file'),
      };
}

export type BlockIo = { readBytes: number; writtenBytes: number };

/**
 * Of `io.stat` (`8:0 rbytes=… wbytes=… rios=…`, and since Linux 5.2 lines that end after the device) or of version 1's
 * `blkio.…io_service_bytes…` (`8:0 Read …`), over all devices.
 */
export function blockIoIn(text: string, version: 1 | 2): BlockIo {
  return version === 1
    ? { readBytes: sum(text, /^\S+ Read (\d+)$/gm), writtenBytes: sum(text, /^\S+ Write (\d+)$/gm) }
    : { readBytes: sum(text, /\brbytes=(\d+)/g), writtenBytes: sum(text, /\bwbytes=(\d+)/g) };
}

/** The content of a file with a single figure; null for `max` and what is none. */
export function wholeNumber(text: string): number | null {
  const trimmed = text.trim();
  return /^\d+$/.test(trimmed) ? Number(trimmed) : null;
}

/** `name figure`, a line each; what is no such line is left out. */
function keyed(text: string): Map<string, number> {
  const figures = new Map<string, number>();
  for (const line of text.split('\n')) {
    const blank = line.indexOf(' ');
    const figure = wholeNumber(line.slice(blank + 1));
    if (blank > 0 && figure !== null) figures.set(line.slice(0, blank), figure);
  }
  return figures;
}

function sum(text: string, figures: RegExp): number {
  let total = 0;
  for (const [, figure] of text.matchAll(figures)) total += Number(figure);
  return total;
}
