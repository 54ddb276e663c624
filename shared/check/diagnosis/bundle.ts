/** One compressed archive of texts about a process, for whoever is to help: bounded, without secrets, mode 0600. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { createGzip } from 'node:zlib';
import { type Clock, withDeadline } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/errors.ts';
import { replacePrivateFile, requireFolder } from '../../runtime/files.ts';
import type { Progress } from '../../runtime/progress.ts';
import type { Random } from '../../runtime/random.ts';
import type { Redact } from './redact.ts';

/** One file of it. `collect` may fail or hang: the file then says so. */
export type Part = { name: string; collect(): Promise<string> };

export type BundlePorts = {
  clock: Clock;
  random: Random;
  redact: Redact;
  progress: Pick<Progress, 'step'>;
};

export type Bundle = {
  /** Of the archive. */
  bytes: number;
  parts: readonly { name: string; chars: number }[];
};

const PART_WITHIN_MS = 40_000;
/** So few that are still waited for are named. */
const NAMED_PARTS = 3;
/** Of one part; what is older than its end is left out. */
const MAX_PART_CHARS = 2 * 1024 * 1024;

/** Rejects when there is a file at `path` already. */
export async function writeBundle(
  path: string,
  parts: readonly Part[],
  { clock, random, redact, progress }: BundlePorts,
): Promise<Bundle> {
  if (existsSync(path)) throw new Error(`${path} is there already: name another file with --out`);
  // Before minutes are spent on what goes there.
  requireFolder(dirname(path), '--out: the folder');
  const waiting = new Set(parts.map(({ name }) => name));
  progress.step(`collecting ${parts.length} parts`);
  const files = await Promise.all(
    parts.map(async ({ name, collect }) => {
      const text = lastOf(redact(await textOf(collect, clock)));
      waiting.delete(name);
      const isNamed = waiting.size > 0 && waiting.size <= NAMED_PARTS;
      if (isNamed) progress.step(`waiting for ${[...waiting].join(', ')}`);
      return { name, text };
    }),
  );
  const bytes = await packed(files);
  replacePrivateFile(path, bytes, random);
  return {
    bytes: bytes.length,
    parts: files.map(({ name, text }) => ({ name, chars: text.length })),
  };
}

/** Never rejects. */
async function textOf(collect: Part['collect'], clock: Clock): Promise<string> {
  try {
    return await withDeadline(clock, PART_WITHIN_MS, collect());
  } catch (error) {
    return `could not be had: ${messageOf(error)}\n`;
  }
}

/** Whole lines from the end. */
function lastOf(text: string): string {
  if (text.length <= MAX_PART_CHARS) return text;
  const end = text.slice(-MAX_PART_CHARS);
  return `(what came before was left out)\n${end.slice(end.indexOf('\n') + 1)}`;
}

async function packed(files: readonly { name: string; text: string }[]): Promise<Uint8Array> {
  const { pack } = await import('tar-stream');
  const archive = pack();
  for (const { name, text } of files) archive.entry({ name, mode: 0o600 }, text);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive.pipe(createGzip())) chunks.push(chunk);
  return Buffer.concat(chunks);
}
