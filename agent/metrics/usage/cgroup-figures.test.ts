/** Files after the kernel's documents of control groups, of versions 1 and 2, and of older and newer kernels. */
import { expect, it } from 'vitest';
import { blockIoIn, cpuNanosIn, memoryPartsIn, wholeNumber } from './cgroup-figures.ts';
import { trafficIn } from './interface-traffic.ts';

it('reads processor time in nanoseconds of both versions', () => {
  expect(cpuNanosIn('123456789012\n', 1)).toBe(123_456_789_012);
  const old = 'usage_usec 2500\nuser_usec 2000\nsystem_usec 500\n';
  const recent = `${old}nice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods 7\nnr_throttled 1\n`;
  expect([old, recent].map((text) => cpuNanosIn(text, 2))).toEqual([2_500_000, 2_500_000]);
  expect([cpuNanosIn('', 1), cpuNanosIn('nr_periods 7\n', 2)]).toEqual([null, null]);
});

it('reads the parts of memory, those of groups below included', () => {
  const v1 = 'cache 1\nrss 2\ninactive_file 3\nhierarchical_memory_limit 9223372036854771712\n';
  expect(memoryPartsIn(`${v1}total_cache 10\ntotal_rss 20\ntotal_inactive_file 30\n`, 1)).toEqual({
    ...{ cacheBytes: 10, residentBytes: 20, inactiveFileBytes: 30 },
  });
  expect(memoryPartsIn(v1, 1)).toEqual({ cacheBytes: 1, residentBytes: 2, inactiveFileBytes: 3 });
  const v2 = 'anon 5\nfile 6\nkernel 1\nfile_mapped 2\ninactive_file 4\nactive_file 2\n';
  expect(memoryPartsIn(v2, 2)).toEqual({ cacheBytes: 6, residentBytes: 5, inactiveFileBytes: 4 });
  expect(memoryPartsIn('', 2)).toEqual({
    ...{ cacheBytes: null, residentBytes: null, inactiveFileBytes: 0 },
  });
});

it('adds up what block devices took and gave', () => {
  const v1 = '8:0 Read 100\n8:0 Write 20\n8:0 Sync 120\n8:0 Total 120\n253:1 Read 1\nTotal 121\n';
  expect(blockIoIn(v1, 1)).toEqual({ readBytes: 101, writtenBytes: 20 });
  expect(blockIoIn('Total 0\n', 1)).toEqual({ readBytes: 0, writtenBytes: 0 });
  const v2 = '8:0 rbytes=100 wbytes=20 rios=3 wios=1 dbytes=7 dios=0\n';
  expect(blockIoIn(v2, 2)).toEqual({ readBytes: 100, writtenBytes: 20 });
  // Devices without figures, and further ones of controllers that are switched on.
  const recent = `253:0 \n259:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0 cost.usage=9\n${v2}`;
  expect(blockIoIn(recent, 2)).toEqual({ readBytes: 101, writtenBytes: 22 });
  expect(blockIoIn('', 2)).toEqual({ readBytes: 0, writtenBytes: 0 });
});

it('takes a figure for one only where it is one', () => {
  expect(['12\n', '0', 'max\n', '', '-1', '1e3'].map(wholeNumber)).toEqual([
    12,
    0,
    ...Array(4).fill(null),
  ]);
});

const HEAD = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
`;

it("adds up the engine's interfaces alone, from old kernels' lines and new ones", () => {
  const rest = ' 1 0 0 0 0 0 0';
  const text = `${HEAD}    lo: 999${rest} 999${rest}
  eth0: 100${rest} 20${rest}
  eth1:7${rest} 8${rest}
docker0: 50${rest} 50${rest}
`;
  expect(trafficIn(text)).toEqual({ receivedBytes: 107, sentBytes: 28 });
  expect(trafficIn(`${HEAD}    lo: 999${rest} 999${rest}\n`)).toBeNull();
  expect(trafficIn(`${HEAD}  eth0: broken off`)).toBeNull();
});
