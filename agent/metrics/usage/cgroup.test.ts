/** Cgroup files as kernels and engines of both versions write them. */
import { expect, it } from 'vitest';
import {
  blockIoIn,
  cgroupFolders,
  cpuNanosIn,
  memoryPartsIn,
  parseCgroupMounts,
  wholeNumber,
} from './cgroup.ts';
import { trafficIn } from './kernel-usage.ts';

const ID = 'c0ffee'.padEnd(64, '0');

const V1_MOUNTS = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:10 master:2 - cgroup cgroup rw,memory
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
`;
const UNIFIED = '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n';
const V2_MOUNTS =
  '30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n';

const v1Groups = (path: string) =>
  ['9:name=systemd', '8:pids', '7:blkio', '4:memory', '2:cpu,cpuacct', '0:']
    .map((head) => `${head}:${path}\n`)
    .join('');
const foldersOf = (groups: string, mounts: string) => {
  const place = cgroupFolders(groups, parseCgroupMounts(mounts));
  return place && [place.cpu, place.memory, place.io, place.pids].map((each) => each?.folder);
};
const under = (path: string) =>
  ['cpu,cpuacct', 'memory', 'blkio', 'pids'].map((each) => `/sys/fs/cgroup/${each}${path}`);

it('finds the groups of version 1 under both cgroup drivers', () => {
  for (const path of [`/docker/${ID}`, `/system.slice/docker-${ID}.scope`]) {
    expect(foldersOf(v1Groups(path), V1_MOUNTS + UNIFIED)).toEqual(under(path));
  }
});

it('finds the group of version 2, also below a custom or user slice', () => {
  for (const path of [
    `/docker/${ID}`,
    `/system.slice/docker-${ID}.scope`,
    `/user.slice/user-1000.slice/user@1000.service/user.slice/docker-${ID}.scope`,
  ]) {
    const place = cgroupFolders(`0::${path}\n`, parseCgroupMounts(V2_MOUNTS));
    const group = { version: 2, folder: `/sys/fs/cgroup${path}` };
    expect(place).toEqual({ cpu: group, memory: group, io: group, pids: group });
  }
});

it('uses version 2 on a mixed host for controllers without version 1 mount', () => {
  const mounts = V1_MOUNTS.replace(/^3[89].*\n/gm, '') + UNIFIED;
  const place = cgroupFolders(v1Groups('/docker/x'), parseCgroupMounts(mounts));
  expect(place?.memory).toEqual({ version: 1, folder: '/sys/fs/cgroup/memory/docker/x' });
  expect(place?.pids).toEqual({ version: 2, folder: '/sys/fs/cgroup/unified/docker/x' });
  const none = V1_MOUNTS.replace(/^3[89].*\n/gm, '');
  expect(cgroupFolders(v1Groups('/docker/x'), parseCgroupMounts(none))?.io).toBeNull();
});

it('supports partial mounts of a hierarchy at any path', () => {
  const mounts = '30 24 0:26 /docker/outer /host\\040groups ro - cgroup2 cgroup ro\n';
  expect(foldersOf('0::/docker/outer/docker/inner\n', mounts)?.[0]).toBe(
    '/host groups/docker/inner',
  );
  expect(foldersOf('0::/docker/outer\n', mounts)?.[0]).toBe('/host groups');
  expect(foldersOf('0::/docker/outermost\n', mounts)).toBeNull();
});

it.each([
  ['in another namespace of control groups', `0::/../${ID}\n`, V2_MOUNTS],
  ['removed', `0::/docker/${ID} (deleted)\n`, V2_MOUNTS],
  ['not mounted', `0::/docker/${ID}\n`, ''],
  ['without the memory controller', '2:cpu,cpuacct:/docker/x\n', V1_MOUNTS],
  ['unreadable', 'nonsense', V2_MOUNTS],
])('finds no folders for groups that are %s', (_, groups, mounts) => {
  expect(cgroupFolders(groups, parseCgroupMounts(mounts))).toBeNull();
});

it('parses processor time of both versions to nanoseconds', () => {
  expect(cpuNanosIn('123456789012\n', 1)).toBe(123_456_789_012);
  const old = 'usage_usec 2500\nuser_usec 2000\nsystem_usec 500\n';
  const recent = `${old}nice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods 7\nnr_throttled 1\n`;
  expect([old, recent].map((text) => cpuNanosIn(text, 2))).toEqual([2_500_000, 2_500_000]);
  expect([cpuNanosIn('', 1), cpuNanosIn('nr_periods 7\n', 2)]).toEqual([null, null]);
});

it('parses the parts of memory, including child groups', () => {
  const v1 = 'cache 1\nrss 2\ninactive_file 3\nhierarchical_memory_limit 9223372036854771712\n';
  expect(memoryPartsIn(`${v1}total_cache 10\ntotal_rss 20\ntotal_inactive_file 30\n`, 1)).toEqual({
    cacheBytes: 10,
    residentBytes: 20,
    inactiveFileBytes: 30,
  });
  expect(memoryPartsIn(v1, 1)).toEqual({ cacheBytes: 1, residentBytes: 2, inactiveFileBytes: 3 });
  const v2 = 'anon 5\nfile 6\nkernel 1\nfile_mapped 2\ninactive_file 4\nactive_file 2\n';
  expect(memoryPartsIn(v2, 2)).toEqual({ cacheBytes: 6, residentBytes: 5, inactiveFileBytes: 4 });
  expect(memoryPartsIn('', 2)).toEqual({
    cacheBytes: null,
    residentBytes: null,
    inactiveFileBytes: 0,
  });
});

it('sums reads and writes of all block devices', () => {
  const v1 = '8:0 Read 100\n8:0 Write 20\n8:0 Sync 120\n8:0 Total 120\n253:1 Read 1\nTotal 121\n';
  expect(blockIoIn(v1, 1)).toEqual({ readBytes: 101, writtenBytes: 20 });
  expect(blockIoIn('Total 0\n', 1)).toEqual({ readBytes: 0, writtenBytes: 0 });
  const v2 = '8:0 rbytes=100 wbytes=20 rios=3 wios=1 dbytes=7 dios=0\n';
  expect(blockIoIn(v2, 2)).toEqual({ readBytes: 100, writtenBytes: 20 });
  // Devices without values, and additional values of enabled controllers.
  const recent = `253:0 \n259:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0 cost.usage=9\n${v2}`;
  expect(blockIoIn(recent, 2)).toEqual({ readBytes: 101, writtenBytes: 22 });
  expect(blockIoIn('', 2)).toEqual({ readBytes: 0, writtenBytes: 0 });
});

it('parses only whole numbers', () => {
  expect(['12\n', '0', 'max\n', '', '-1', '1e3'].map(wholeNumber)).toEqual([
    12,
    0,
    ...Array(4).fill(null),
  ]);
});

const HEAD = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
`;

it("sums only the engine's interfaces, in the formats of old and new kernels", () => {
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
