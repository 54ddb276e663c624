/** Load and traffic of the host out of the kernel's own tables. Pure but for what it remembers. */
import type { HostMetrics } from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';

export type HostTraffic = HostMetrics['network'];

/** What went through the ways out of the host so far; `interfaces` are those that were counted. */
export type UplinkBytes = { interfaces: string; rx: number; tx: number };

const MS_PER_SECOND = 1_000;
/** Over less than this no speed can be told. */
const SHORTEST_MS = 500;
type Counted = UplinkBytes & { atMs: number };

const UNKNOWN: HostTraffic = { rx_bytes_per_second: null, tx_bytes_per_second: null };

/** The mean of the last minute, out of /proc/loadavg. */
export function loadOf(loadavg: string): number | null {
  const [, load] = /^(\d+(?:\.\d+)?) /.exec(loadavg) ?? [];
  return load === undefined ? null : Number(load);
}

/** The interfaces of the default routes, out of /proc/net/route and /proc/net/ipv6_route. */
export function uplinksOf(route: string, ipv6Route: string): Set<string> {
  const ipv4 = [...route.matchAll(/^(\S+)\t00000000\t.*\t00000000\t/gm)].map((match) => match[1]);
  const ipv6 = [...ipv6Route.matchAll(/^0{32} 00 .* (\S+)$/gm)].map((match) => match[1]);
  const names = [...ipv4, ...ipv6].filter((name) => name !== undefined);
  return new Set(names.filter((name) => name !== 'lo'));
}

/** Bytes received and sent by the interfaces so far, out of /proc/net/dev; null where none of them is listed. */
export function bytesThrough(dev: string, interfaces: ReadonlySet<string>): UplinkBytes | null {
  const rows = dev.split('\n').flatMap((line) => {
    const [name = '', figures = ''] = line.split(/:(.*)/);
    if (!interfaces.has(name.trim())) return [];
    const cells = figures.trim().split(/\s+/).map(Number);
    return [{ name: name.trim(), rx: cells[0] ?? Number.NaN, tx: cells[8] ?? Number.NaN }];
  });
  if (rows.length === 0) return null;
  const names = rows.map(({ name }) => name);
  const sum = { interfaces: names.toSorted().join(' '), rx: 0, tx: 0 };
  for (const { rx, tx } of rows) {
    sum.rx += rx;
    sum.tx += tx;
  }
  return Number.isFinite(sum.rx + sum.tx) ? sum : null;
}

/** Speeds since the call before; unknown at the first, and when counters began anew or are those of others. */
export function createTraffic(clock: Clock) {
  let last: Counted | null = null;
  let speeds = UNKNOWN;

  function speedsOf(now: Counted): HostTraffic {
    // What an interface has carried in its life is no traffic of the last seconds.
    if (last === null || now.interfaces !== last.interfaces) return UNKNOWN;
    if (now.rx < last.rx || now.tx < last.tx) return UNKNOWN;
    const seconds = (now.atMs - last.atMs) / MS_PER_SECOND;
    return {
      rx_bytes_per_second: Math.round((now.rx - last.rx) / seconds),
      tx_bytes_per_second: Math.round((now.tx - last.tx) / seconds),
    };
  }

  return (bytes: UplinkBytes | null): HostTraffic => {
    const atMs = clock.monotonicMs();
    const isSoon = last !== null && atMs - last.atMs < SHORTEST_MS;
    if (bytes !== null && isSoon) return speeds;
    const now = bytes === null ? null : { ...bytes, atMs };
    speeds = now === null ? UNKNOWN : speedsOf(now);
    last = now;
    return speeds;
  };
}
