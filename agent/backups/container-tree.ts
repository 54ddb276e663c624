/**
 * The file system of a pod's container, as a tree of overlay layers. Every access goes through the kernel's overlay in a
 * jail: it applies the rules of layers (hidden and replaced files) and follows no link. README.md has the reasons.
 */
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ContainerFiles } from '../containers/volumes/container-files.ts';
import { syncFolder } from './durable-files.ts';
import { jailCommand, type LayerJail } from './jail.ts';
import { OperationFailure } from './operation.state.ts';
import type { RunPorts } from './operation-context.ts';

type Ports = Pick<RunPorts, 'runCommand' | 'scratchFolder'>;

const SCRIPT = { timeoutMs: 60_000, maxOutputBytes: 4_096 };

/** Kinds of entries at a path. `empty`: a folder without entries; `through`: the path goes through a link or a file. */
const FINDINGS = ['absent', 'empty', 'folder', 'file', 'link', 'other', 'through'] as const;
export type Finding = (typeof FINDINGS)[number];

/**
 * Script that prints what is at the path whose names are its parameters. For a link, `-e` is false, because the jail
 * follows no link.
 */
const LOOK = `p=.
for name; do
  if [ -L "$p" ] || { [ -e "$p" ] && [ ! -d "$p" ]; }; then echo through; exit; fi
  [ -d "$p" ] || { echo absent; exit; }
  p=$p/$name
done
if [ -L "$p" ]; then echo link
elif [ -d "$p" ]; then
  if [ -z "$(find "$p" -mindepth 1 -maxdepth 1 -print -quit)" ]; then echo empty; else echo folder; fi
elif [ -f "$p" ]; then echo file
elif [ -e "$p" ]; then echo other
else echo absent; fi`;

/**
 * Creates the folders in its parameters, each inside the folder before it and with the owner of that folder. Then makes
 * the kernel copy the last folder, with its parents, into the layer of the container.
 */
const COPY_UP = `p=.
for name; do
  [ -d "$p/$name" ] || { mkdir -m 755 -- "$p/$name" && chown --reference="$p" -- "$p/$name"; } || exit 1
  p=$p/$name
done
chmod --reference="$p" -- "$p"`;

/**
 * Moves the only entry of `new` to `ready/tree`. A lower layer contains `ready`, too. Therefore the kernel marks a
 * folder that is moved into `ready` as opaque, so that it hides lower layers. The kernel does not always mark a new
 * folder.
 */
const SEAL = `mv -T -- "new/$1" ready/tree`;

/** Fails if the folder $1 shows the entry $2, which a lower layer has in that folder. */
const CHECK_HIDES = `[ -d "$1" ] && [ ! -e "$1/$2" ]`;
const HIDDEN = '.podwright-hidden';
const SEALED = 'tree';

/** Returns the jail for reading the tree of a running or stopped container. `cwd` is relative to the tree. */
export function readingJail(
  { layers: { upper, lower } }: ContainerFiles,
  cwd: string,
  { scratchFolder }: Pick<Ports, 'scratchFolder'>,
): LayerJail {
  return { mountPoint: scratchFolder, lower: [upper, ...lower], write: null, cwd };
}

/** Returns what is at the path of the container. Mounts are not part of its tree. */
export async function findIn(
  files: ContainerFiles,
  podPath: string,
  ports: Ports,
): Promise<Finding> {
  const said = await runIn(readingJail(files, '.', ports), LOOK, namesOf(podPath), ports);
  const found = FINDINGS.find((each) => each === said?.trim());
  if (found !== undefined) return found;
  throw unusable();
}

/**
 * Returns the folder on the host in which the trees of a restore are staged. The engine removes the folder with the
 * container.
 */
export function stagingParentOf({ layers }: ContainerFiles): string {
  return dirname(layers.upper);
}

/**
 * Returns the entry's path in the container's layer on the host. The path exists only if the container changed the
 * entry.
 */
export function liveInLayer({ layers }: ContainerFiles, podPath: string): string {
  return join(layers.upper, podPath);
}

/**
 * Returns the layers below a restore's folder. restic writes through an overlay of them, so that the kernel refuses
 * entries that a pod could not create.
 */
function stagingLayers(folder: string) {
  return {
    lower: join(folder, 'lower'),
    upper: join(folder, 'upper'),
    work: join(folder, 'work'),
  };
}

/**
 * Creates the layers in a new folder. Returns restic's jail, the target folder in that jail, and the target's path on
 * the host.
 */
export async function makeStagingLayers(
  folder: string,
  ports: Pick<Ports, 'scratchFolder'>,
): Promise<{ jail: LayerJail; target: string; tree: string }> {
  const { lower, upper, work } = stagingLayers(folder);
  for (const path of [join(lower, 'new'), join(lower, 'ready'), upper, work]) {
    await mkdir(path, { recursive: true });
  }
  return { jail: stagingJail(folder, ports), target: 'new', tree: join(upper, 'new') };
}

function stagingJail(folder: string, { scratchFolder }: Pick<Ports, 'scratchFolder'>): LayerJail {
  const { lower, upper, work } = stagingLayers(folder);
  return { mountPoint: scratchFolder, lower: [lower], write: { upper, work }, cwd: '.' };
}

/**
 * Makes a restored folder hide the image's folder at the same path, and checks the result. Returns the new path of the
 * restored folder on the host. Rejects with VerificationFailed.
 */
export async function sealStaged(folder: string, entry: string, ports: Ports): Promise<string> {
  const { upper } = stagingLayers(folder);
  const moved = await runIn(stagingJail(folder, ports), SEAL, [basename(entry)], ports);
  if (moved === null) throw unusable();
  const image = join(folder, 'image');
  await mkdir(join(image, SEALED, HIDDEN), { recursive: true });
  const ready = join(upper, 'ready');
  const lower = [ready, image];
  const jail = { mountPoint: ports.scratchFolder, lower, write: null, cwd: '.' };
  if ((await runIn(jail, CHECK_HIDES, [SEALED, HIDDEN], ports)) !== null)
    return join(ready, SEALED);
  const message = 'The restored folder would show files of the image';
  throw new OperationFailure('VerificationFailed', message);
}

/**
 * Creates the folders above the path in the container's layer, with the owner and mode that they have inside the
 * container. No process of the container may run.
 */
export async function copyUpParents(
  files: ContainerFiles,
  podPath: string,
  ports: Ports,
): Promise<void> {
  const names = namesOf(dirname(podPath));
  if (names.length === 0) return;
  const { upper, work, lower } = files.layers;
  const write = { upper, work };
  const jail: LayerJail = { mountPoint: ports.scratchFolder, lower, write, cwd: '.' };
  if ((await runIn(jail, COPY_UP, names, ports)) === null) throw unusable();
  for (const [index] of names.entries()) {
    await syncFolder(join(upper, ...names.slice(0, index + 1)));
  }
  await syncFolder(upper);
}

function namesOf(podPath: string): string[] {
  return podPath.split('/').filter((name) => name !== '');
}

/** Returns the script's output; null if it failed or the layers could not be mounted. */
async function runIn(
  jail: LayerJail,
  script: string,
  args: readonly string[],
  { runCommand }: Ports,
): Promise<string | null> {
  await mkdir(jail.mountPoint, { recursive: true, mode: 0o700 });
  const [program, ...enter] = jailCommand(jail);
  const command = [...enter, 'sh', '-c', script, 'sh', ...args];
  const { exitCode, stdout } = await runCommand(program, command, SCRIPT);
  return exitCode === 0 ? stdout : null;
}

function unusable(): OperationFailure {
  return new OperationFailure('EngineFailed', 'The file system of the container cannot be used');
}
