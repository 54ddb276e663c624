/** Files of archived months: compressed lines of transfers. A file has its name only when it is complete and on disk. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { TransferLine } from './export-line.ts';

/** Maximum length of a line in characters; a longer line is damage. */
const MAX_LINE_CHARS = 10_000;

export function archiveFile(folder: string, month: string): string {
  return join(folder, `ledger-${month}.jsonl.gz`);
}

/** Writes a file under a temporary name, flushes it to disk and renames it. A kill leaves a file `….partial`. */
export async function writeArchive(
  file: string,
  lines: AsyncIterable<TransferLine>,
): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true });
  const partial = `${file}.partial`;
  const target = createWriteStream(partial, { mode: 0o600, flush: true });
  await pipeline(Readable.from(textsOf(lines)), createGzip(), target);
  await rename(partial, file);
  const parent = await open(folder, 'r');
  try {
    await parent.sync();
  } finally {
    await parent.close();
  }
}

async function* textsOf(lines: AsyncIterable<TransferLine>): AsyncGenerator<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}

/** Yields the lines of a file. Rejects for a missing or damaged file, and for a line that is not a transfer. */
export async function* readArchive(file: string): AsyncGenerator<TransferLine> {
  const plain = createGunzip();
  const copied = pipeline(createReadStream(file), plain);
  // The loop below receives the same failure.
  copied.catch(() => undefined);
  plain.setEncoding('utf8');
  let rest = '';
  for await (const text of plain) {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_CHARS) throw new Error('a line is too long');
    for (const line of lines) yield TransferLine.parse(JSON.parse(line));
  }
  await copied;
  if (rest !== '') throw new Error('the last line is incomplete');
}
