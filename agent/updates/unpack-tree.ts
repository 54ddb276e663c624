/** Unpacks a release from an image's archive: only files, folders and links inside the release, with limits. */
import { createWriteStream, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Extract, Header } from 'tar-stream';

const MAX_ENTRIES = 200_000;
const MAX_BYTES = 4 * 1024 * 1024 * 1024;
const MAX_NAME_CHARS = 200;
const EXECUTABLE = 0o111;

/**
 * Unpacks the archive's single top-level folder into the empty `folder`. All files are owned by the caller and readable
 * by all users; owners and set-user-id bits are dropped. Rejects other kinds of entries and paths that lead outside.
 */
export async function unpackTree(archive: AsyncIterable<unknown>, folder: string): Promise<void> {
  // Loaded on use: only an update needs it.
  const { extract } = await import('tar-stream');
  const entries = extract();
  const fed = feed(archive, entries);
  const made = new Set(['.']);
  let [count, bytes] = [0, 0];
  for await (const entry of entries) {
    const { header } = entry;
    count += 1;
    bytes += header.size ?? 0;
    if (count > MAX_ENTRIES || bytes > MAX_BYTES) throw new Error('the release is too large');
    const path = pathWithin(header);
    if (path !== null) {
      // The parent must be a folder that this call created: a link does not count as one.
      if (!made.has(dirname(path))) throw refused(header);
      if (header.type === 'directory') made.add(path);
      await make(join(folder, path), path, entry);
    }
    entry.resume();
  }
  await fed;
}

type Entry = AsyncIterable<unknown> & { header: Header };

const refused = ({ type, name }: Header) =>
  new Error(`the release has a ${type} ${JSON.stringify(name.slice(0, MAX_NAME_CHARS))}`);

/** Writes the archive to the parser. Errors of the archive are thrown where its entries are read. */
async function feed(archive: AsyncIterable<unknown>, entries: Extract): Promise<void> {
  const once = (event: 'close' | 'drain') =>
    new Promise<void>((resolve) => entries.once(event, () => resolve()));
  const closed = once('close');
  try {
    for await (const chunk of archive) {
      if (entries.destroyed) return;
      if (!(chunk instanceof Uint8Array) || entries.write(chunk)) continue;
      await Promise.race([closed, once('drain')]);
    }
    entries.end(null);
  } catch (error) {
    entries.destroy(error instanceof Error ? error : null);
  }
}

/** Returns the path below the archive's folder; null for that folder itself. Throws for a path that leads outside. */
function pathWithin(header: Header): string | null {
  const [first, ...parts] = header.name.replace(/\/$/, '').split('/');
  if (['', '.', '..'].some((odd) => odd === first || parts.includes(odd))) throw refused(header);
  return parts.length === 0 ? null : parts.join('/');
}

async function make(path: string, within: string, entry: Entry): Promise<void> {
  const { type, mode = 0, linkname = '' } = entry.header;
  if (type === 'directory') mkdirSync(path, { mode: 0o755 });
  else if (type === 'symlink' && leadsInside(within, linkname)) symlinkSync(linkname, path);
  else if (type === 'file') {
    // Fails if the file exists.
    const options = { flags: 'wx', mode: (mode & EXECUTABLE) === 0 ? 0o644 : 0o755 };
    await pipeline(entry, createWriteStream(path, options));
  } else throw refused(entry.header);
}

/** Accepts only targets that first go up and then down: going up after another link could lead anywhere. */
function leadsInside(within: string, to: string): boolean {
  if (!/^(?:\.\.\/)*(?!\.\.(?:\/|$))[^/]+(?:\/(?!\.\.(?:\/|$))[^/]+)*$/.test(to)) return false;
  return !posix.join(dirname(within), to).startsWith('../');
}
