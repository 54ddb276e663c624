/** Copies programs of this host, with their libraries, into pods whose image has none of them. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mustRun } from '../agents/real-host.ts';

const FOLDERS = ['/usr/bin', '/usr/sbin', '/bin', '/sbin'];
/**
 * The C library loads this library by name when it resolves users, so lists of a program's libraries do not contain it.
 * Newer systems do not have this library.
 */
const NAME_SERVICE = 'libnss_files.so.2';
const COPY = 'to=$1; shift; tar -chf - -C / "$@" | docker cp - "$to":/';

/** Copies each program to the same path inside the container. Rejects if this host does not have it. */
export async function copyPrograms(containerId: string, ...names: string[]): Promise<void> {
  const files = new Set<string>();
  for (const name of names) {
    const program = FOLDERS.map((folder) => join(folder, name)).find(existsSync);
    if (program === undefined)
      throw new Error(`${name} is not installed on this host; run npm run setup`);
    files.add(program);
    for (const library of await librariesOf(program)) files.add(library);
  }
  const paths = [...files].map((path) => path.slice(1));
  await mustRun('sh', '-c', COPY, 'copy', containerId, ...paths);
}

async function librariesOf(program: string): Promise<string[]> {
  const listed = await mustRun('ldd', program);
  const found = [...listed.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].flatMap(
    ([, path]) => path ?? [],
  );
  const libc = found.find((path) => path.includes('libc.so'));
  const extra = libc === undefined ? [] : [join(dirname(libc), NAME_SERVICE)].filter(existsSync);
  return [...found, ...extra];
}
