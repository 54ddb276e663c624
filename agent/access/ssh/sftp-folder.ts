/** A relocatable sftp-server: a copy of the host's with its loader and libraries, for images without one. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { KEYS_MOUNT_POINT } from '../../pods/pod-ssh.ts';

/** Paths of sftp-server in the common distributions. */
export const SFTP_PROGRAMS = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/lib/ssh/sftp-server',
];
const LDD_TIMEOUT_MS = 5_000;
const MAX_LDD_BYTES = 100_000;
const MAX_LIBRARIES = 50;

/** Fills `folder`; returns false if this host has no sftp-server that can be copied. */
export async function prepareSftpFolder(
  folder: string,
  runCommand: RunCommand,
  programs: readonly string[] = SFTP_PROGRAMS,
): Promise<boolean> {
  const program = programs.find(existsSync);
  if (program === undefined) return false;
  const { stdout } = await runCommand('ldd', [program], {
    timeoutMs: LDD_TIMEOUT_MS,
    maxOutputBytes: MAX_LDD_BYTES,
  });
  const needed = parseLdd(stdout);
  if (needed === null) return false;
  // World-readable, because pods may run as any user; the parent folder excludes the host's users. The key
  // folder is created because nothing can be mounted into a missing path of a read-only folder.
  for (const path of [folder, join(folder, 'lib'), join(folder, basename(KEYS_MOUNT_POINT))]) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o755);
  }
  install(program, join(folder, 'sftp-server'));
  install(needed.loader, join(folder, 'lib', 'ld.so'));
  for (const path of needed.libraries) install(path, join(folder, 'lib', basename(path)));
  return true;
}

/** Parses the output of ldd; null for a static program or one with too many libraries. Pure. */
export function parseLdd(text: string): { loader: string; libraries: string[] } | null {
  const lines = text.split('\n').map((line) => line.trim());
  const paths = lines.flatMap((line) => /(?:=> |^)(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  const loader = paths.find((path) => /\/ld-[^/]*\.so[^/]*$/.test(path));
  const libraries = paths.filter((path) => path !== loader);
  return loader === undefined || libraries.length > MAX_LIBRARIES ? null : { loader, libraries };
}

/** Replaces by rename, because pods may be running the old file. */
function install(from: string, to: string): void {
  if (existsSync(to) && readFileSync(to).equals(readFileSync(from))) return;
  copyFileSync(from, `${to}.new`);
  chmodSync(`${to}.new`, 0o755);
  renameSync(`${to}.new`, to);
}
