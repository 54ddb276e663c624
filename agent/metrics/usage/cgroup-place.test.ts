/** Lines as kernels and engines of both kinds write them: where a container's groups lie. */
import { expect, it } from 'vitest';
import { parseCgroupMounts, placeOf } from './cgroup-place.ts';

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
  const place = placeOf(groups, parseCgroupMounts(mounts));
  return place && [place.cpu, place.memory, place.io, place.pids].map((each) => each?.folder);
};
const under = (path: string) =>
  ['cpu,cpuacct', 'memory', 'blkio', 'pids'].map((each) => `/sys/fs/cgroup/${each}${path}`);

it('follows the groups of version 1, whichever driver named them', () => {
  for (const path of [`/docker/${ID}`, `/system.slice/docker-${ID}.scope`]) {
    expect(foldersOf(v1Groups(path), V1_MOUNTS + UNIFIED)).toEqual(under(path));
  }
});

it('follows the one group of version 2, also below a slice of its own or of a user', () => {
  for (const path of [
    `/docker/${ID}`,
    `/system.slice/docker-${ID}.scope`,
    `/user.slice/user-1000.slice/user@1000.service/user.slice/docker-${ID}.scope`,
  ]) {
    const place = placeOf(`0::${path}\n`, parseCgroupMounts(V2_MOUNTS));
    const group = { version: 2, folder: `/sys/fs/cgroup${path}` };
    expect(place).toEqual({ cpu: group, memory: group, io: group, pids: group });
  }
});

it('takes from version 2 what a mixed host has not given to version 1', () => {
  const mounts = V1_MOUNTS.replace(/^3[89].*\n/gm, '') + UNIFIED;
  const place = placeOf(v1Groups('/docker/x'), parseCgroupMounts(mounts));
  expect(place?.memory).toEqual({ version: 1, folder: '/sys/fs/cgroup/memory/docker/x' });
  expect(place?.pids).toEqual({ version: 2, folder: '/sys/fs/cgroup/unified/docker/x' });
  const none = V1_MOUNTS.replace(/^3[89].*\n/gm, '');
  expect(placeOf(v1Groups('/docker/x'), parseCgroupMounts(none))?.io).toBeNull();
});

it('knows that only a part of a hierarchy may be mounted, and at any place', () => {
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
  ['without memory', '2:cpu,cpuacct:/docker/x\n', V1_MOUNTS],
  ['unreadable', 'nonsense', V2_MOUNTS],
])('finds nothing for groups that are %s', (_, groups, mounts) => {
  expect(placeOf(groups, parseCgroupMounts(mounts))).toBeNull();
});
