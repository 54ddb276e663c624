/**
 * Finds the layers of a pod's container on this host, for backups and restores of folders outside its volumes. Only
 * overlay file systems have them. agent/backups/README.md has the reasons.
 */
import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { ContainerEngine, ContainerLayers, ContainerMount } from '../engine/engine.ts';

/** File system of a container. `mounts` in it are not part of the layers. */
export type ContainerFiles = {
  containerId: string;
  layers: ContainerLayers;
  mounts: readonly ContainerMount[];
};

/** Files that the engine mounts into every container and does not list. */
const ENGINE_FILES = ['/etc/hostname', '/etc/hosts', '/etc/resolv.conf'].map(
  (target): ContainerMount => ({ target, volumeFolder: null }),
);

/** Limit of remembered containers. */
const MAX_REMEMBERED = 256;

/** `mountsOf` returns the content of a process's mountinfo; empty if it cannot be read. */
export function createContainerFiles(deps: {
  engine: Pick<ContainerEngine, 'containerFiles' | 'inspectContainer'>;
  mountsOf?: (pid: number) => Promise<string>;
}) {
  const { engine, mountsOf = mountsOfProcess } = deps;
  const known = new Map<string, ContainerFiles>();

  async function find(containerId: string): Promise<ContainerFiles | 'absent' | 'unreadable'> {
    const found = await engine.containerFiles(containerId);
    if (found === null) return 'absent';
    const layers = found.layers ?? (await mountedLayers(containerId));
    if (layers === null) return 'unreadable';
    return { containerId, layers, mounts: [...found.mounts, ...ENGINE_FILES] };
  }

  /** Engines with containerd's image store report no layers; the mounts of a running container show them. */
  async function mountedLayers(containerId: string): Promise<ContainerLayers | null> {
    const pid = (await engine.inspectContainer(containerId))?.pid ?? 0;
    return pid === 0 ? null : layersInMounts(await mountsOf(pid));
  }

  return {
    /**
     * Returns `absent` if the container is missing, and `unreadable` if its file system is not an overlay or the agent
     * cannot read and write the layers. Rejects with EngineError.
     */
    async of(containerId: string): Promise<ContainerFiles | 'absent' | 'unreadable'> {
      const files = known.get(containerId) ?? (await find(containerId));
      if (typeof files === 'string') return files;
      if (!(await isUsable(files.layers))) return 'unreadable';
      if (known.size >= MAX_REMEMBERED) known.clear();
      known.set(containerId, files);
      return files;
    },
  };
}

async function mountsOfProcess(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
}

/** Returns the layers of the overlay that is mounted at `/`; null if there is none. */
export function layersInMounts(mountinfo: string): ContainerLayers | null {
  for (const line of mountinfo.split('\n')) {
    const [mount = '', source = ''] = line.split(' - ');
    const [type, , options = ''] = source.split(' ');
    if (mount.split(' ')[4] !== '/' || type !== 'overlay') continue;
    const [upper, work, lower] = ['upperdir', 'workdir', 'lowerdir'].map((name) =>
      options
        .split(',')
        .find((option) => option.startsWith(`${name}=`))
        ?.slice(name.length + 1),
    );
    if (!upper?.startsWith('/') || !work?.startsWith('/') || lower === undefined) return null;
    // containerd shortens long lists to paths that are relative to the folder of all layers.
    const store = dirname(dirname(upper));
    return { upper, work, lower: lower.split(':').map((path) => resolve(store, path)) };
  }
  return null;
}

/** Returns true if the agent runs as root on the engine's host and can access every layer. */
async function isUsable({ upper, work, lower }: ContainerLayers): Promise<boolean> {
  const { R_OK, W_OK, X_OK } = constants;
  try {
    for (const folder of [upper, work]) await access(folder, R_OK | W_OK | X_OK);
    for (const folder of lower) await access(folder, R_OK | X_OK);
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}
