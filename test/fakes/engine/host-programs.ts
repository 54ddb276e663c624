/** Programs of this host copied into pods whose image has none of them, with the libraries they need. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mustRun } from '../agents/real-host.ts';

const FOLDERS = ['/usr/bin', '/usr/sbin', '/bin', '/sbin'];
/** Loaded by name where users are looked up, so no list of libraries shows it; newer systems have none. */
const NAME_SERVICE = 'libnss_files.so.2';
const COPY = 'to=$1; shift; tar -chf - -C / "$@" | docker cp - "$to":/';

/** Each is then at the same place inside the container; fails when this host has not got it. */
export async function copyPrograms(containerId: string, ...names: string[]): Promise<void> {
  const files = new Set<string>();
  for (const name of names) {
    const program = FOLDERS.map((folder) => join(folder, name)).find(existsSync);
    if (program === undefined) throw new Error(`${name} is not here; run npm run setup`);
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
