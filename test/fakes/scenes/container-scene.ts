/**
 * A pod whose container is an overlay file system with an image, without an engine. Scripts run in its tree as
 * processes of the container do: through the kernel's overlay. Needs root.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jailCommand } from '../../../agent/backups/jail.ts';
import { fingerprintOf } from '../mixed-tree.ts';
import { type BackupScene, createBackupScene, type SceneOptions } from './backup-scene.ts';

export type ContainerScene = BackupScene & {
  /** Folder of the image's only layer with files. */
  image: string;
  /** Runs a script in the root of the container and returns its output. */
  inContainer(script: string): string;
  /** Returns the fingerprint of a folder of the container, named relative to its root. */
  treeOf(path: string): string[];
};

/** The image has `/root` with three entries, and `/home/user` that belongs to user 1000. */
export function createContainerScene(options: SceneOptions = {}): ContainerScene {
  const scene = createBackupScene({ ...options, container: true });
  const { folder, layers } = scene;
  const mountPoint = join(folder, 'mount');
  const image = layers.lower.at(-1) ?? '';
  for (const path of ['root/bin', 'home/user', 'etc'])
    mkdirSync(join(image, path), { recursive: true });
  for (const path of ['root/.bashrc', 'root/bin/tool', 'etc/hostname']) {
    writeFileSync(join(image, path), 'of the image\n');
  }
  execFileSync('chown', ['1000:1001', join(image, 'home/user')]);
  execFileSync('chmod', ['2750', join(image, 'home/user')]);

  function inContainer(script: string): string {
    mkdirSync(mountPoint, { recursive: true });
    const { upper, work, lower } = layers;
    const jail = { mountPoint, lower, write: { upper, work }, cwd: '.' };
    const [program, ...enter] = jailCommand(jail);
    return execFileSync(program, [...enter, 'sh', '-ec', script], { encoding: 'utf8' });
  }

  return {
    ...scene,
    image,
    inContainer,
    treeOf(path) {
      const copy = join(folder, 'copy');
      inContainer(`rm -rf '${copy}'; cp -a './${path}' '${copy}'`);
      return fingerprintOf(copy);
    },
  };
}
