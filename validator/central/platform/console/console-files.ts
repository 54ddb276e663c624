/** Reads the files of the built console. The build is replaced while the server runs, so the folder is read each time. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasCode } from '#shared/runtime/errors.ts';

/** Folder into which the set-up builds the console of this checkout or release. */
export const CONSOLE_FOLDER = fileURLToPath(
  new URL('../../../../node_modules/.cache/podwright/console', import.meta.url),
);

const BUILD = /^[\da-f]{16}$/;
const ASSET = /^[\w-]+(?:\.[\w-]+)*$/;
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
};
/** Compressed variants that the build writes, best first. */
const VARIANTS = [
  { encoding: 'br', suffix: '.br' },
  { encoding: 'gzip', suffix: '.gz' },
] as const;

export type ConsoleFile = { content: Buffer; type: string; encoding: string | null };

/** The files of the console; null if the file, or a build, does not exist. */
export type ConsoleFiles = {
  /** The page of every address of the console. `accepted` is the Accept-Encoding header. */
  page(accepted: string): Promise<ConsoleFile | null>;
  /** A script, style, font or picture. */
  asset(name: string, accepted: string): Promise<ConsoleFile | null>;
};

export function openConsoleFiles(folder: string): ConsoleFiles {
  async function read(path: string, type: string, accepted: string): Promise<ConsoleFile | null> {
    const build = (await readOrNull(join(folder, 'current')))?.toString('utf8').trim() ?? '';
    if (!BUILD.test(build)) return null;
    for (const { encoding, suffix } of VARIANTS) {
      if (!acceptsEncoding(accepted, encoding)) continue;
      const content = await readOrNull(join(folder, build, path + suffix));
      if (content !== null) return { content, type, encoding };
    }
    const content = await readOrNull(join(folder, build, path));
    return content && { content, type, encoding: null };
  }

  return {
    page: (accepted) => read('index.html', 'text/html; charset=utf-8', accepted),
    async asset(name, accepted) {
      const type = TYPES[name.slice(name.lastIndexOf('.') + 1)];
      return type === undefined || !ASSET.test(name)
        ? null
        : read(`assets/${name}`, type, accepted);
    },
  };
}

/** Returns true if an Accept-Encoding header names the encoding and does not forbid it with `q=0`. */
function acceptsEncoding(accepted: string, encoding: string): boolean {
  return accepted.split(',').some((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return name === encoding && !parameters.some((part) => /^q=0(?:\.0*)?$/.test(part));
  });
}

async function readOrNull(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}
