/** The built-in image, made from the host's static busybox without a registry, for demos, tests and probes. */
import { readFile } from 'node:fs/promises';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
import { EPOCH } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type ContainerEngine, LABELS } from '../engine/engine.ts';

export const BUILTIN_REFERENCE = `${BUILTIN_HOST}base:1`;

/** Names of commands that are links to busybox. */
const APPLETS = `
  ash awk base64 cat chmod chown cp cut date dd df du echo env expr false find free grep gunzip
  gzip head hostname httpd id ip kill killall ln ls md5sum mkdir mktemp mount mv nc nproc nslookup
  ping printf ps pwd readlink rm rmdir sed seq sh sha256sum sleep sort stat stty sync tail tar tee
  test timeout top touch tr true uname uniq uptime vi wc wget which whoami xargs yes
`
  .trim()
  .split(/\s+/);

/**
 * Init process that exits at once on SIGTERM. A shell runs traps only between commands, so the script waits for a
 * background sleep.
 */
const INIT_SCRIPT = `#!/bin/sh
trap 'exit 0' TERM INT
httpd -p 8000 -h /www
line=1
while :; do
  echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) line $line"
  line=$((line + 1))
  sleep 1 &
  wait $!
done
`;

const FILES: readonly [name: string, mode: number, content: string][] = [
  [
    'etc/passwd',
    0o644,
    'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n',
  ],
  ['etc/group', 0o644, 'root:x:0:\nnogroup:x:65534:\n'],
  [
    'www/index.html',
    0o644,
    '<!doctype html>\n<title>Podwright</title>\n<p>This pod is running.</p>\n',
  ],
  ['sbin/podwright-base', 0o755, INIT_SCRIPT],
];

const FOLDERS: readonly [name: string, mode: number][] = [
  ['bin', 0o755],
  ['etc', 0o755],
  ['root', 0o700],
  ['sbin', 0o755],
  ['tmp', 0o1777],
  ['workspace', 0o755],
  ['www', 0o755],
];

const CHANGES = [
  'ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
  'WORKDIR /root',
  'CMD ["/sbin/podwright-base"]',
  `LABEL ${LABELS.managed}=1`,
];

type Entry = { name: string; mode: number; type?: 'directory' | 'symlink'; linkname?: string };

/** Returns the image's id. Creates the image if the engine does not have it. */
export async function ensureBuiltinImage(
  engine: ContainerEngine,
  busyboxPath: string,
): Promise<string> {
  const present = await engine.inspectImage(BUILTIN_REFERENCE);
  if (present !== null) return present.id;
  const busybox = await readBusybox(busyboxPath);
  await engine.importImage(await builtinTar(busybox), BUILTIN_REFERENCE, CHANGES);
  const made = await engine.inspectImage(BUILTIN_REFERENCE);
  if (made === null) throw new Error('the engine does not list the image that it imported');
  return made.id;
}

/** Packs the root file system as a tar archive. Deterministic: the archive has no times and no owners. */
export async function builtinTar(busybox: Uint8Array): Promise<AsyncIterable<Uint8Array>> {
  // Loaded on demand, because it is needed once per host.
  const { pack } = await import('tar-stream');
  const tar = pack();
  const add = (header: Entry, content: string | Uint8Array = '') =>
    tar.entry({ uid: 0, gid: 0, mtime: EPOCH, ...header }, content);
  for (const [name, mode] of FOLDERS) add({ name, mode, type: 'directory' });
  add({ name: 'bin/busybox', mode: 0o755 }, busybox);
  for (const applet of APPLETS) {
    add({ name: `bin/${applet}`, mode: 0o777, type: 'symlink', linkname: 'busybox' });
  }
  for (const [name, mode, content] of FILES) add({ name, mode }, content);
  tar.finalize();
  return chunksOf(tar);
}

async function* chunksOf(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) if (chunk instanceof Uint8Array) yield chunk;
}

async function readBusybox(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (cause) {
    throw new Error(
      `the built-in image needs a static busybox at ${path}: install the package busybox-static (${messageOf(cause)})`,
      { cause },
    );
  }
}
