/** Base image for the agent's image: a shell and the libraries that Node needs, copied from this machine. */
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { mustRun } from '../agents/real-host.ts';

/** Imports the base image as `name`; `root` is a checkout with installed packages. */
export async function importImageBase(name: string, root: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-base-'));
  const put = (from: string, path: string) => {
    const to = join(folder, 'root', path);
    mkdirSync(dirname(to), { recursive: true });
    cpSync(realpathSync(from), to);
  };
  try {
    const linked = await mustRun('ldd', realpathSync(join(root, 'node_modules/.bin/node')));
    for (const [path] of linked.matchAll(/\/\S+/g)) put(path, path);
    put('/bin/busybox', 'bin/busybox');
    symlinkSync('busybox', join(folder, 'root/bin/sh'));
    const archive = join(folder, 'base.tar');
    await mustRun('tar', '-C', join(folder, 'root'), '-cf', archive, '.');
    await mustRun('docker', 'import', archive, name);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
