/** The diagnosis archive: texts about a process in one tar.gz of limited size, without secrets, mode 0600. */
import { createReadStream, existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { createGunzip, createGzip } from 'node:zlib';
import { readArguments } from '../../runtime/arguments.ts';
import { type Clock, naiveUtc, systemClock, withDeadline } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/errors.ts';
import { fileProblem, replacePrivateFile, requireWritableFolder } from '../../runtime/files.ts';
import type { Progress } from '../../runtime/progress.ts';
import { type Random, systemRandom } from '../../runtime/random.ts';
import type { Redact } from './redact.ts';

/** One file of an archive. If `collect` fails or times out, the file contains the reason. */
export type Part = { name: string; collect(): Promise<string> };

/** Returns the parts of an archive. `logs`: log files that the user named. */
export type ArchiveSource = (
  logs: readonly string[],
) => Promise<{ parts: readonly Part[]; redact: Redact }>;

export type ArchivePorts = {
  clock: Clock;
  random: Random;
  redact: Redact;
  progress: Pick<Progress, 'step'>;
};

export type WrittenArchive = {
  bytes: number;
  parts: readonly { name: string; chars: number }[];
};

const PART_WITHIN_MS = 40_000;
/** Largest number of pending parts that the progress line names. */
const NAMED_PARTS = 3;
/** Maximum length of a part; the beginning of a longer one is cut off. */
const MAX_PART_CHARS = 2 * 1024 * 1024;

/** Writes the archive. Rejects if `path` exists or its folder does not; `option` is the option that named it. */
export async function writeArchive(
  { path, option }: { path: string; option: string },
  parts: readonly Part[],
  { clock, random, redact, progress }: ArchivePorts,
): Promise<WrittenArchive> {
  if (existsSync(path)) {
    throw new Error(`${path} exists already: name another file with ${option}`);
  }
  // Checked first, because collecting takes minutes.
  requireWritableFolder(dirname(path), `${option}: the folder`);
  const pending = new Set(parts.map(({ name }) => name));
  progress.step(`collecting ${parts.length} parts`);
  const files = await Promise.all(
    parts.map(async ({ name, collect }) => {
      const text = lastOf(redact(await textOf(collect, clock)));
      pending.delete(name);
      const isNamed = pending.size > 0 && pending.size <= NAMED_PARTS;
      if (isNamed) progress.step(`waiting for ${[...pending].join(', ')}`);
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

/** Resolves with the text, or with the reason why there is none. Never rejects. */
async function textOf(collect: Part['collect'], clock: Clock): Promise<string> {
  try {
    return await withDeadline(clock, PART_WITHIN_MS, collect());
  } catch (error) {
    return `not available: ${messageOf(error)}\n`;
  }
}

/** Returns the last whole lines of the text, up to the limit. */
function lastOf(text: string): string {
  if (text.length <= MAX_PART_CHARS) return text;
  const end = text.slice(-MAX_PART_CHARS);
  return `(the beginning was cut off)\n${end.slice(end.indexOf('\n') + 1)}`;
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

/** Returns the files of an archive that `writeArchive` wrote. */
export async function readArchive(path: string): Promise<{ name: string; text: string }[]> {
  const { extract } = await import('tar-stream');
  const files: { name: string; text: string }[] = [];
  for await (const entry of createReadStream(path).pipe(createGunzip()).pipe(extract())) {
    files.push({ name: entry.header.name, text: await readText(entry) });
  }
  return files;
}

/** Writes the archive and prints its parts. Returns the exit status: 0 if it was written, 1 if not. */
export async function writeArchiveFile(
  target: { program: string; path: string; option: string; logs: readonly string[] },
  source: ArchiveSource,
  terminal: {
    out(text: string): void;
    error(text: string): void;
    progress: Progress;
    folder: string;
  },
): Promise<number> {
  const { program, option, logs } = target;
  // npm --prefix runs the program in another folder than the caller's.
  const path = resolve(terminal.folder, target.path);
  const { out, progress } = terminal;
  const complain = (text: string) => terminal.error(`${program}: ${text}\n`);
  for (const log of logs) {
    const problem = await problemOfLog(log);
    if (problem !== null) complain(`--log: ${problem}`);
  }
  try {
    const { parts, redact } = await source(logs);
    const ports = { clock: systemClock, random: systemRandom, redact, progress };
    const archive = await writeArchive({ path, option }, parts, ports).finally(progress.end);
    for (const { name, chars } of archive.parts) out(`  ${name}, ${chars} characters\n`);
    out(`${path}, ${archive.bytes} bytes\n`);
    return 0;
  } catch (error) {
    complain(messageOf(error));
    return 1;
  }
}

/** Returns why the log cannot be read; null if it can. An unreadable log does not prevent the archive. */
function problemOfLog(path: string): Promise<string | null> {
  return access(path, constants.R_OK).then(
    () => null,
    (error: unknown) => fileProblem(path, error),
  );
}

function diagHelp(name: string): string {
  return `Usage: npm run ${name} -- diag [--out FILE] [--log FILE]…

Writes one archive (tar.gz, mode 0600) for support: versions, configuration, findings of the doctor, journal, a
summary of the store, metrics. Secrets are left out or hidden; read the archive before you send it. The command
needs the ${name}'s variables; the ${name} may be running or stopped. npm run ${name} -- doctor --archive FILE does the same.

  --out FILE   output file (default podwright-${name}-diag-<time>.tar.gz in the current folder)
  --log FILE   adds the end of this log, for a ${name} that does not log to the journal; may be repeated
  --help       print this
`;
}

const DIAG_OPTIONS = {
  out: { type: 'string' },
  log: { type: 'string', multiple: true },
  help: { type: 'boolean' },
} as const;

/** Parses the options of `diag`. `problem` is a usage error, which is printed with the help. */
export function readArchiveOptions(
  name: string,
  args: readonly string[],
): { path: string; logs: readonly string[] } | { help: string } | { problem: string } {
  const { values, problems } = readArguments(args, DIAG_OPTIONS, 0);
  if (problems.length > 0)
    return { problem: `${problems.join('\n')}\n\n${diagHelp(name).trimEnd()}` };
  if (values.help === true) return { help: diagHelp(name) };
  const time = naiveUtc(systemClock.now()).replaceAll(/[:.]/g, '-');
  return { path: values.out ?? `podwright-${name}-diag-${time}.tar.gz`, logs: values.log ?? [] };
}
