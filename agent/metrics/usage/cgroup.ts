/** Where a process's control groups lie in this process's view of the file system, of version 1, 2 or both. Pure. */

/** One mounted hierarchy. */
export type CgroupMount = {
  version: 1 | 2;
  /** Empty for version 2, whose groups have whatever is switched on for them. */
  controllers: readonly string[];
  /** The part of the hierarchy that is mounted. */
  root: string;
  folder: string;
};

export type GroupFolder = { version: 1 | 2; folder: string };

/** Null for what is not mounted here. Processor and memory are in every pod's figures, the others where they are told. */
export type CgroupPlace = {
  cpu: GroupFolder;
  memory: GroupFolder;
  io: GroupFolder | null;
  pids: GroupFolder | null;
};

const FSTYPE_VERSIONS: Readonly<Record<string, 1 | 2>> = { cgroup: 1, cgroup2: 2 };
/** Fields of a line of mountinfo (proc(5)); those after ` - ` count from there. */
const ROOT_FIELD = 3;
const FOLDER_FIELD = 4;
/** What a group is called whose last process has ended and that is removed. */
const REMOVED = ' (deleted)';

/** Of `/proc/self/mountinfo`. */
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

/** `cgroups` is the process's `/proc/PID/cgroup`. Null where its groups are gone or cannot be reached from here. */
export function placeOf(cgroups: string, mounts: readonly CgroupMount[]): CgroupPlace | null {
  const groups = parseGroups(cgroups);
  const unified = folderIn(
    mounts.find(({ version }) => version === 2),
    groups.find(({ id }) => id === '0')?.path,
  );
  const folderOf = (controller: string): GroupFolder | null => {
    const mount = mounts.find(({ controllers }) => controllers.includes(controller));
    // A controller is in one hierarchy alone: of version 2 where none of version 1 has it.
    if (mount === undefined) return unified === null ? null : { version: 2, folder: unified };
    const path = groups.find(({ controllers }) => controllers.includes(controller))?.path;
    const folder = folderIn(mount, path);
    return folder === null ? null : { version: 1, folder };
  };
  const [cpu, memory] = [folderOf('cpuacct'), folderOf('memory')];
  if (cpu === null || memory === null) return null;
  return { cpu, memory, io: folderOf('blkio'), pids: folderOf('pids') };
}

/** `4:memory:/docker/…`; of version 2 `0::/system.slice/docker-….scope`. */
function parseGroups(text: string) {
  return text.split('\n').flatMap((line) => {
    const match = /^(\d+):([^:]*):(\/.*)$/.exec(line);
    if (match === null) return [];
    const [, id = '', controllers = '', path = ''] = match;
    return [{ id, controllers: controllers.split(','), path }];
  });
}

/** Null for a path outside what is mounted, as `/../docker/…` is in another namespace of control groups. */
function folderIn(mount: CgroupMount | undefined, path: string | undefined): string | null {
  if (mount === undefined || path === undefined || path.endsWith(REMOVED)) return null;
  if (path.split('/').includes('..')) return null;
  const { root, folder } = mount;
  if (root === '/') return folder + path;
  if (path === root) return folder;
  return path.startsWith(`${root}/`) ? folder + path.slice(root.length) : null;
}

/** Blanks and the like are octal there. */
function unescaped(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

/** Figures of control groups, as the kernel's documents of both versions write them (cgroup-v1/, cgroup-v2.rst). Pure. */

const NANOS_PER_MICRO = 1_000;

/** Of `cpuacct.usage` (version 1) or `cpu.stat`, in nanoseconds. Null where it is not told. */
export function cpuNanosIn(text: string, version: 1 | 2): number | null {
  if (version === 1) return wholeNumber(text.trim());
  const micros = keyed(text).get('usage_usec');
  return micros === undefined ? null : micros * NANOS_PER_MICRO;
}

export type MemoryParts = {
  /** Kept of files that nobody has used for a while. */
  inactiveFileBytes: number;
  /** Of no file; null where it is not told. */
  residentBytes: number | null;
  /** All that is kept of files; null where it is not told. */
  cacheBytes: number | null;
};

/** Of `memory.stat`, the groups below included: version 1 has figures of its own for those. */
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
 * Of `io.stat` (`8:0 rbytes=… wbytes=… rios=…`, and since Linux 5.2 lines that end after the device) or of version 1's
 * `blkio.…io_service_bytes…` (`8:0 Read …`), over all devices.
 */
export function blockIoIn(text: string, version: 1 | 2): BlockIo {
  return version === 1
    ? { readBytes: sum(text, /^\S+ Read (\d+)$/gm), writtenBytes: sum(text, /^\S+ Write (\d+)$/gm) }
    : { readBytes: sum(text, /\brbytes=(\d+)/g), writtenBytes: sum(text, /\bwbytes=(\d+)/g) };
}

/** The content of a file with a single figure; null for `max` and what is none. */
export function wholeNumber(text: string): number | null {
  const trimmed = text.trim();
  return /^\d+$/.test(trimmed) ? Number(trimmed) : null;
}

/** `name figure`, a line each; what is no such line is left out. */
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
