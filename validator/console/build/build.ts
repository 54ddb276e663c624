/**
 * Builds the console with Vite. A build is a folder named after a hash of its sources; the file `current` beside it has
 * the name of the folder that the server reads.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

const SOURCES = join(import.meta.dirname, '..');
const LOCK_FILE = join(SOURCES, '../../package-lock.json');
const KEY_CHARS = 16;
/** Files that the server sends compressed. */
const TEXT = /\.(?:html|js|css|svg)$/;

/**
 * Builds into a temporary folder, renames the folder, and replaces `current` last. A process that is killed at any point
 * leaves `current` at a complete build. Removes the other builds.
 */
export async function buildConsole(folder: string): Promise<void> {
  const key = sourceKey();
  const target = join(folder, key);
  if (readCurrent(folder) !== key) {
    mkdirSync(folder, { recursive: true });
    const draft = mkdtempSync(join(folder, 'draft-'));
    await bundle(draft);
    compress(draft);
    // The server may run as another user.
    chmodSync(draft, 0o755);
    rmSync(target, { recursive: true, force: true });
    renameSync(draft, target);
  }
  // Also after an unnecessary call, because the set-up compares the time of this file with those of the sources.
  writeFileSync(join(folder, 'current.new'), `${key}\n`);
  renameSync(join(folder, 'current.new'), join(folder, 'current'));
  for (const name of readdirSync(folder)) {
    if (name !== key && name !== 'current') rmSync(join(folder, name), { recursive: true });
  }
}

/** Hash of everything that determines the build: the sources, the packages' versions, and Node's version. */
function sourceKey(): string {
  const hash = createHash('sha256').update(process.version).update(readFileSync(LOCK_FILE));
  for (const path of globSync('**/*.{ts,tsx,css,html,svg}', { cwd: SOURCES }).toSorted()) {
    if (path.endsWith('.test.ts')) continue;
    hash.update(`\0${path}\0`).update(readFileSync(join(SOURCES, path)));
  }
  return hash.digest('hex').slice(0, KEY_CHARS);
}

function readCurrent(folder: string): string | null {
  try {
    const key = readFileSync(join(folder, 'current'), 'utf8').trim();
    return readdirSync(join(folder, key)).includes('index.html') ? key : null;
  } catch {
    return null;
  }
}

async function bundle(outDir: string): Promise<void> {
  await build({
    configFile: false,
    root: SOURCES,
    logLevel: 'error',
    // The build depends on no file with variables.
    envDir: false,
    oxc: { jsx: { runtime: 'automatic' } },
    build: {
      outDir,
      emptyOutDir: false,
      assetsDir: 'assets',
      // The content security policy forbids inline code and data URLs of scripts and styles.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      target: 'es2023',
      // Names the chunks of a page, from which a test computes its size.
      manifest: 'manifest.json',
    },
  });
}

/** Writes `FILE.gz` and `FILE.br` beside each text file. */
function compress(folder: string): void {
  for (const path of globSync('**/*', { cwd: folder })) {
    if (!TEXT.test(path)) continue;
    const content = readFileSync(join(folder, path));
    writeFileSync(join(folder, `${path}.gz`), gzipSync(content, { level: 9 }));
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    writeFileSync(join(folder, `${path}.br`), brotliCompressSync(content, { params }));
  }
}
