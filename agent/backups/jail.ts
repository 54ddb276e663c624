/**
 * Private mount namespaces in which programs read and write the trees of pods. In these namespaces the kernel follows
 * no link in a tree: a pod may replace a folder with a link to host files at any time.
 */

/** A folder, bind-mounted over itself. */
export type FolderJail = {
  folder: string;
  /** True for a backup; a restore writes to the folder. */
  readOnly: boolean;
  /** Working directory: the folder, or a folder above or inside it. */
  cwd: string;
};

/** Layers of an overlay file system, mounted as one tree. The mount exists in the namespace only. */
export type LayerJail = {
  /** Existing folder that the mount hides in the namespace. */
  mountPoint: string;
  /** Read-only layers, topmost first. */
  lower: readonly string[];
  /** Layer that receives changes, and the kernel's working folder for it; null: the tree is read-only. */
  write: { upper: string; work: string } | null;
  /** Working directory, relative to the tree. */
  cwd: string;
};

export type Jail = FolderJail | LayerJail;

/** Exit status if the jail cannot be created; restic uses lower values. */
export const JAIL_FAILED = 125;

/** Fixed scripts; folders and arguments are their parameters. */
const ENTER_FOLDER = `{ mount --bind "$1" "$1" && mount -o "remount,bind,$2" "$1" && cd "$3"; } || exit ${JAIL_FAILED}; shift 3; exec "$@"`;

/**
 * Mounts through short links on a tmpfs: the kernel limits mount options to one memory page, which the layer paths of a
 * large image exceed. `LIBMOUNT_FORCE_MOUNT2` makes newer versions of `mount` use mount(2), which has no limit per
 * option.
 */
const ENTER_LAYERS = `{ mount -t tmpfs -o mode=700 tmpfs "$1" && cd "$1" && mkdir tree; } || exit ${JAIL_FAILED}
options=$2 cwd=$3 n=0; shift 3
while [ "$1" != -- ]; do ln -s -- "$1" "$n" || exit ${JAIL_FAILED}; n=$((n+1)); shift; done; shift
{ LIBMOUNT_FORCE_MOUNT2=always mount -t overlay -o "$options" overlay tree && cd "tree/$cwd"; } || exit ${JAIL_FAILED}
exec "$@"`;

/** Returns the command line that enters the jail; the program and its arguments follow it. Requires root. */
export function jailCommand(jail: Jail): [string, ...string[]] {
  const script = 'folder' in jail ? folderScript(jail) : layerScript(jail);
  return ['unshare', '--mount', '--propagation', 'private', '--', 'sh', '-c', ...script];
}

function folderScript({ folder, readOnly, cwd }: FolderJail): string[] {
  return [ENTER_FOLDER, 'sh', folder, `${readOnly ? 'ro' : 'rw'},nosymfollow`, cwd];
}

function layerScript({ mountPoint, lower, write, cwd }: LayerJail): string[] {
  const writable = write === null ? [] : [write.upper, write.work];
  const links = lower.map((_, index) => writable.length + index).join(':');
  const mode = write === null ? 'ro' : 'rw,upperdir=0,workdir=1';
  // `index=off`, as the engine mounts layers. With an index, the kernel refuses layers that another mount uses.
  const options = `${mode},nosymfollow,index=off,lowerdir=${links}`;
  return [ENTER_LAYERS, 'sh', mountPoint, options, cwd, ...writable, ...lower, '--'];
}

/** Returns the host path of a layer jail's tree, which programs may print. */
export function treeOf({ mountPoint }: LayerJail): string {
  return `${mountPoint}/tree`;
}
