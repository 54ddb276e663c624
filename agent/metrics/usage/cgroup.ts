/** Control groups of versions 1 and 2: folders of a process's groups, and parsers for their files. Pure. */

/** One mounted hierarchy. */
export type CgroupMount = {
  version: 1 | 2;
  /** Empty for version 2, where controllers are enabled per group. */
  controllers: readonly string[];
  /** The part of the hierarchy that is mounted. */
  root: string;
  folder: string;
};

export type GroupFolder = { version: 1 | 2; folder: string };

/** `io` and `pids` are null if not mounted. */
export type CgroupFolders = {
  cpu: GroupFolder;
  memory: GroupFolder;
  io: GroupFolder | null;
  pids: GroupFolder | null;
};

const FSTYPE_VERSIONS: Readonly<Record<string, 1 | 2>> = { cgroup: 1, cgroup2: 2 };
/** Indexes of fields in a line of mountinfo (proc(5)), before the separator ` - `. */
const ROOT_FIELD = 3;
const FOLDER_FIELD = 4;
/** Suffix of a removed group. */
const REMOVED = ' (deleted)';

/** Parses `/proc/self/mountinfo`. */
export function parseCgroupMounts(mountinfo: string): CgroupMount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [type = '', , options = ''] = after.split(' ');
    const version = FSTYPE_VERSIONS[type];
    const fields = before.split(' ');
    const [root, folder] = [fields[ROOT_FIELD], fields[FOLDER_FIELD]];
    if (version === undefined || root === undefined || folder === undefined) return [];
    const controllers = version === 1 ? options.split(',') : [];
    return [{ version, controllers, root: unescaped(root), folder: unescaped(folder) }];
  });
}

/** `cgroups` is the process's `/proc/PID/cgroup`. Null if its groups are removed or not mounted. */
export function cgroupFolders(
  cgroups: string,
  mounts: readonly CgroupMount[],
): CgroupFolders | null {
  const groups = parseGroups(cgroups);
  const unified = folderIn(
    mounts.find(({ version }) => version === 2),
    groups.find(({ id }) => id === '0')?.path,
  );
  const folderOf = (controller: string): GroupFolder | null => {
    const mount = mounts.find(({ controllers }) => controllers.includes(controller));
    // A controller belongs to one hierarchy: version 2 unless a version 1 mount has it.
    if (mount === undefined) return unified === null ? null : { version: 2, folder: unified };
    const path = groups.find(({ controllers }) => controllers.includes(controller))?.path;
    const folder = folderIn(mount, path);
    return folder === null ? null : { version: 1, folder };
  };
  const [cpu, memory] = [folderOf('cpuacct'), folderOf('memory')];
  if (cpu === null || memory === null) return null;
  return { cpu, memory, io: folderOf('blkio'), pids: folderOf('pids') };
}

/** Parses `4:memory:/docker/…` (version 1) and `0::/system.slice/docker-….scope` (version 2). */
function parseGroups(text: string) {
  return text.split('\n').flatMap((line) => {
    const match = /^(\d+):([^:]*):(\/.*)$/.exec(line);
    if (match === null) return [];
    const [, id = '', controllers = '', path = ''] = match;
    return [{ id, controllers: controllers.split(','), path }];
  });
}

/** Null for a path outside the mounted part, such as `/../docker/…` in another cgroup namespace. */
function folderIn(mount: CgroupMount | undefined, path: string | undefined): string | null {
  if (mount === undefined || path === undefined || path.endsWith(REMOVED)) return null;
  if (path.split('/').includes('..')) return null;
  const { root, folder } = mount;
  if (root === '/') return folder + path;
  if (path === root) return folder;
  return path.startsWith(`${root}/`) ? folder + path.slice(root.length) : null;
}

/** Decodes octal escapes, such as those of blanks. */
function unescaped(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

const NANOS_PER_MICRO = 1_000;

/** Parses `cpuacct.usage` (version 1) or `cpu.stat` to nanoseconds. */
export function cpuNanosIn(text: string, version: 1 | 2): number | null {
  if (version === 1) return wholeNumber(text.trim());
  const micros = keyed(text).get('usage_usec');
  return micros === undefined ? null : micros * NANOS_PER_MICRO;
}

export type MemoryParts = {
  /** File cache that was not used recently. */
  inactiveFileBytes: number;
  /** Anonymous memory; null if unknown. */
  residentBytes: number | null;
  /** All file cache; null if unknown. */
  cacheBytes: number | null;
};

/** Parses `memory.stat`, including child groups, for which version 1 has separate `total_` values. */
export function memoryPartsIn(text: string, version: 1 | 2): MemoryParts {
  const figures = keyed(text);
  const first = (...names: string[]) =>
    names.map((name) => figures.get(name)).find((figure) => figure !== undefined) ?? null;
  return version === 1
    ? {
        inactiveFileBytes: first('total_inactive_file', 'inactive_file') ?? 0,
        residentBytes: first('total_rss', 'rss'),
        cacheBytes: first('total_cache', 'cache'),
      }
    : {
        inactiveFileBytes: first('inactive_file') ?? 0,
        residentBytes: first('anon'),
        cacheBytes: first('file'),
      };
}

export type BlockIo = { readBytes: number; writtenBytes: number };

/**
 * Sums `io.stat` (`8:0 rbytes=… wbytes=… rios=…`; since Linux 5.2 also lines with the device only) or version 1's
 * `blkio.…io_service_bytes…` (`8:0 Read …`) over all devices.
 */
export function blockIoIn(text: string, version: 1 | 2): BlockIo {
  return version === 1
    ? { readBytes: sum(text, /^\S+ Read (\d+)$/gm), writtenBytes: sum(text, /^\S+ Write (\d+)$/gm) }
    : { readBytes: sum(text, /\brbytes=(\d+)/g), writtenBytes: sum(text, /\bwbytes=(\d+)/g) };
}

/** Parses a file with a single number; null for `max` and other text. */
export function wholeNumber(text: string): number | null {
  const trimmed = text.trim();
  return /^\d+$/.test(trimmed) ? Number(trimmed) : null;
}

/** Parses lines `name number`; ignores other lines. */
function keyed(text: string): Map<string, number> {
  const figures = new Map<string, number>();
  for (const line of text.split('\n')) {
    const blank = line.indexOf(' ');
    const figure = wholeNumber(line.slice(blank + 1));
    if (blank > 0 && figure !== null) figures.set(line.slice(0, blank), figure);
  }
  return figures;
}

function sum(text: string, figures: RegExp): number {
  let total = 0;
  for (const [, figure] of text.matchAll(figures)) total += Number(figure);
  return total;
}
