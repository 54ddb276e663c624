/** Layers of a container as its mounts show them. */
import { expect, it } from 'vitest';
import { layersInMounts } from './container-files.ts';

const STORE = '/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots';
const PROC = '612 611 0:80 / /proc rw,nosuid - proc proc rw';

it('finds the layers of the root, also where containerd has shortened their paths', () => {
  const root = (options: string) =>
    `611 590 0:77 / / rw,relatime master:231 - overlay overlay rw,${options}\n${PROC}\n`;
  const full = `lowerdir=${STORE}/2/fs:${STORE}/1/fs,upperdir=${STORE}/9/fs,workdir=${STORE}/9/work`;
  const short = `lowerdir=2/fs:1/fs,upperdir=${STORE}/9/fs,workdir=${STORE}/9/work,index=off`;
  const layers = {
    upper: `${STORE}/9/fs`,
    work: `${STORE}/9/work`,
    lower: [`${STORE}/2/fs`, `${STORE}/1/fs`],
  };
  expect(layersInMounts(root(full))).toEqual(layers);
  expect(layersInMounts(root(short))).toEqual(layers);
});

it.each([
  ['another file system', '611 590 0:77 / / rw,relatime - btrfs /dev/sda1 rw,space_cache'],
  [
    'an overlay that is not the root',
    '611 590 0:77 / /data rw - overlay overlay rw,lowerdir=/a,upperdir=/b',
  ],
  ['no writable layer', '611 590 0:77 / / rw - overlay overlay ro,lowerdir=/a:/b'],
  ['nothing', ''],
])('finds no layers in %s', (_what, mounts) => {
  expect(layersInMounts(mounts)).toBeNull();
});
