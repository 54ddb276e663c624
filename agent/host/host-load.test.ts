import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { bytesOfDisks, bytesThrough, createTraffic, loadOf, uplinksOf } from './host-load.ts';

const ROUTE = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
bond0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
`;
const ROUTE6 = `fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     bond0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003    ens6
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
`;
const UNKNOWN = { rx_bytes_per_second: null, tx_bytes_per_second: null };
const dev = (rx: number, tx: number) => `Inter-|   Receive                     |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0
 bond0:${rx} 1 0 0 0 0 0 0 ${tx} 1 0 0 0 0 0 0
  ens6: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
veth1a: 5000 1 0 0 0 0 0 0 5000 1 0 0 0 0 0 0
`;

it('reads the load of the last minute', () => {
  expect(loadOf('12.50 9.01 7.77 3/1203 55\n')).toBe(12.5);
  expect(loadOf('')).toBeNull();
});

it('counts the bytes of each uplink once', () => {
  const uplinks = uplinksOf(ROUTE, ROUTE6);
  expect([...uplinks]).toEqual(['bond0', 'ens6']);
  expect(bytesThrough(dev(10_000, 20_000), uplinks)).toEqual({
    interfaces: 'bond0 ens6',
    rx: 11_000,
    tx: 22_000,
  });
  expect(uplinksOf('garbage', '')).toEqual(new Set());
  expect(bytesThrough(dev(1, 1), new Set())).toBeNull();
  expect(bytesThrough('bond0: garbage', new Set(['bond0']))).toBeNull();
});

it('reports speeds from the second call, and none after counters were reset', async () => {
  const clock = createManualClock();
  const traffic = createTraffic(clock);
  const uplink = (rx: number, tx: number) => ({ interfaces: 'bond0', rx, tx });
  expect(traffic(uplink(1_000, 500))).toEqual(UNKNOWN);
  await clock.advance(10_000);
  expect(traffic(uplink(21_000, 500))).toEqual({
    rx_bytes_per_second: 2_000,
    tx_bytes_per_second: 0,
  });
  await clock.advance(100);
  expect(traffic(uplink(30_000, 700))).toMatchObject({ rx_bytes_per_second: 2_000 });
  await clock.advance(9_900);
  expect(traffic(uplink(10, 600))).toEqual(UNKNOWN);
  expect(traffic(null)).toEqual(UNKNOWN);
  expect(traffic(uplink(10, 600))).toEqual(UNKNOWN);
});

it('reports no speeds after the uplinks changed', async () => {
  const clock = createManualClock();
  const traffic = createTraffic(clock);
  const through = (...names: string[]) => traffic(bytesThrough(dev(10_000, 500), new Set(names)));
  through('bond0');
  await clock.advance(10_000);
  expect(through('bond0', 'ens6')).toEqual(UNKNOWN);
  await clock.advance(10_000);
  expect(through('ens6', 'bond0')).toEqual({ rx_bytes_per_second: 0, tx_bytes_per_second: 0 });
  await clock.advance(10_000);
  // The counters are higher, but they belong to another interface.
  expect(through('bond0', 'veth1a')).toEqual(UNKNOWN);
});

it('adds up the disks of the host, without partitions and devices on top of them', () => {
  const line = (name: string, read: number, written: number) =>
    `   8       0 ${name} 100 5 ${read} 40 200 6 ${written} 80 0 90 120 0 0 0 0 0 0`;
  const table = [
    line('sda', 10, 20),
    line('sda1', 10, 20),
    line('nvme0n1', 4, 2),
    line('nvme0n1p1', 4, 2),
    line('dm-0', 14, 22),
    line('md127', 14, 22),
    line('loop0', 9, 9),
  ].join('\n');
  expect(bytesOfDisks(table)).toEqual({ interfaces: 'nvme0n1 sda', rx: 14 * 512, tx: 22 * 512 });
  expect(bytesOfDisks('')).toBeNull();
  expect(bytesOfDisks('8 0 sda 1')).toBeNull();
});
