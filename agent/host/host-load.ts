/** Load, network traffic and disk traffic of the host from the kernel's tables. */
import type { HostMetrics } from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';

export type HostTraffic = HostMetrics['network'];

/** Byte counters of a set of devices: the host's uplinks or its disks. `interfaces`: their names, joined. */
export type UplinkBytes = { interfaces: string; rx: number; tx: number };

const MS_PER_SECOND = 1_000;
/** Shortest interval over which a speed is computed. */
const SHORTEST_MS = 500;
type Counters = UplinkBytes & { atMs: number };

const UNKNOWN: HostTraffic = { rx_bytes_per_second: null, tx_bytes_per_second: null };

/** Load average of the last minute from /proc/loadavg. */
export function loadOf(loadavg: string): number | null {
  const [, load] = /^(\d+(?:\.\d+)?) /.exec(loadavg) ?? [];
  return load === undefined ? null : Number(load);
}

/** Interfaces of the default routes, from /proc/net/route and /proc/net/ipv6_route. */
export function uplinksOf(route: string, ipv6Route: string): Set<string> {
  const ipv4 = [...route.matchAll(/^(\S+)\t00000000\t.*\t00000000\t/gm)].map((match) => match[1]);
  const ipv6 = [...ipv6Route.matchAll(/^0{32} 00 .* (\S+)$/gm)].map((match) => match[1]);
  const names = [...ipv4, ...ipv6].filter((name) => name !== undefined);
  return new Set(names.filter((name) => name !== 'lo'));
}

/** Bytes received and sent by the interfaces, from /proc/net/dev; null if none of them is listed. */
export function bytesThrough(dev: string, interfaces: ReadonlySet<string>): UplinkBytes | null {
  const rows = dev.split('\n').flatMap((line) => {
    const [name = '', figures = ''] = line.split(/:(.*)/);
    if (!interfaces.has(name.trim())) return [];
    const cells = figures.trim().split(/\s+/).map(Number);
    return [{ name: name.trim(), rx: cells[0] ?? Number.NaN, tx: cells[8] ?? Number.NaN }];
  });
  return summed(rows);
}

/** Null if there is no row, or one without numbers. */
function summed(rows: readonly { name: string; rx: number; tx: number }[]): UplinkBytes | null {
  if (rows.length === 0) return null;
  const names = rows.map(({ name }) => name);
  const sum = { interfaces: names.toSorted().join(' '), rx: 0, tx: 0 };
  for (const { rx, tx } of rows) {
    sum.rx += rx;
    sum.tx += tx;
  }
  return Number.isFinite(sum.rx + sum.tx) ? sum : null;
}

/** Disks of the host. Partitions, RAID and LVM devices are left out, because their disks count the same bytes. */
const DISK = /^(?:sd[a-z]+|vd[a-z]+|xvd[a-z]+|hd[a-z]+|nvme\d+n\d+|mmcblk\d+)$/;
const BYTES_PER_SECTOR = 512;
/** Positions in /proc/diskstats. */
const NAME_COLUMN = 2;
const READ_COLUMN = 5;
const WRITTEN_COLUMN = 9;

/** Bytes read (`rx`) and written (`tx`) by the host's disks since it booted, from /proc/diskstats; null without a disk. */
export function bytesOfDisks(diskstats: string): UplinkBytes | null {
  const rows = diskstats.split('\n').flatMap((line) => {
    const cells = line.trim().split(/\s+/);
    const name = cells[NAME_COLUMN] ?? '';
    if (!DISK.test(name)) return [];
    const [read, written] = [Number(cells[READ_COLUMN]), Number(cells[WRITTEN_COLUMN])];
    return [{ name, rx: read * BYTES_PER_SECTOR, tx: written * BYTES_PER_SECTOR }];
  });
  return summed(rows);
}

/**
 * Computes speeds since the previous call. They are unknown at the first call, and if counters were reset or the
 * uplinks changed.
 */
export function createTraffic(clock: Clock) {
  let last: Counters | null = null;
  let speeds = UNKNOWN;

  function speedsOf(now: Counters): HostTraffic {
    // Counters of a new interface include its traffic before the last call.
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
