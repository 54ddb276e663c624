/** Logs of builds: in memory while a build runs, then one file per build in the agent's home. */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';

const SUFFIX = '.jsonl';
const BuildLineSchema = z.object({ seq: z.int(), ms: z.int(), log: z.string() });

export type BuildLogs = ReturnType<typeof createBuildLogs>;

/** Keys are hexadecimal and used as file names. If the agent is killed during a build, the build has no log. */
export function createBuildLogs({ folder, clock }: { folder: string; clock: Clock }) {
  const running = new Map<string, BuildLines>();
  /** Number of starts and ends by key, so that readers skip unchanged files. */
  const revisions = new Map<string, number>();
  const pathOf = (key: string) => join(folder, `${key}${SUFFIX}`);

  function bumpRevision(key: string): void {
    revisions.set(key, (revisions.get(key) ?? 0) + 1);
  }

  return {
    /** Starts a log in place of an earlier one of this key. */
    begin(key: string): BuildLines {
      const lines = createBuildLines(clock.now);
      running.set(key, lines);
      bumpRevision(key);
      return lines;
    },
    /** Writes the log to its file atomically. */
    async end(key: string): Promise<void> {
      const lines = running.get(key);
      if (lines === undefined) return;
      lines.end();
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const text = lines
        .list()
        .map((line) => `${JSON.stringify(line)}\n`)
        .join('');
      const draft = `${pathOf(key)}.new`;
      await writeFile(draft, text, { mode: 0o600 });
      await rename(draft, pathOf(key));
      running.delete(key);
      bumpRevision(key);
    },
    /** Changes whenever the log has changed. */
    revision: (key: string): string =>
      `${revisions.get(key) ?? 0}.${running.get(key)?.count() ?? 0}`,
    isRunning: (key: string): boolean => running.has(key),
    /** Retained lines, oldest first; empty if there is no log. */
    async read(key: string): Promise<BuildLine[]> {
      const lines = running.get(key);
      if (lines !== undefined) return lines.list();
      const text = await readFile(pathOf(key), 'utf8').catch(() => '');
      return text.split('\n').flatMap((line) => {
        const parsed = BuildLineSchema.safeParse(parseJson(line));
        return parsed.success ? [parsed.data] : [];
      });
    },
    /** Keys and modification times of the log files. */
    async list(): Promise<{ key: string; writtenMs: number }[]> {
      const names = await readdir(folder).catch(() => []);
      const found = names.map(async (name) => {
        const { mtimeMs } = await stat(join(folder, name));
        return { key: name.replace(/\.jsonl(\.new)?$/, ''), writtenMs: mtimeMs };
      });
      return (await Promise.allSettled(found)).flatMap((result) =>
        result.status === 'fulfilled' ? [result.value] : [],
      );
    },
    async remove(key: string): Promise<void> {
      revisions.delete(key);
      await rm(pathOf(key), { force: true });
      await rm(`${pathOf(key)}.new`, { force: true });
    },
  };
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** `seq` numbers the lines of a build without gaps, so a missing number is a dropped line. */
export type BuildLine = { seq: number; ms: number; log: string };

/** Limit in characters for the retained beginning, and the same limit for the retained end. */
export const MAX_PART_CHARS = 512 * 1024;
/** Maximum length of a line; longer ones are split. */
const MAX_LINE_CHARS = 16 * 1024;

export type BuildLines = ReturnType<typeof createBuildLines>;

/** Edits a line for the renter; null hides the line. */
export type EditLine = (line: string) => string | null;

/** Splits a build's output into lines and retains the first and the last ones. `nowMs` timestamps each line. */
export function createBuildLines(nowMs: () => number) {
  const head: BuildLine[] = [];
  const tail: BuildLine[] = [];
  let headChars = 0;
  let tailChars = 0;
  let seq = 0;
  let open = '';
  let edit: EditLine = (line) => line;

  function add(text: string): void {
    const log = edit(text);
    if (log === null) return;
    const line = { seq, ms: nowMs(), log };
    seq += 1;
    if (tail.length === 0 && headChars + log.length <= MAX_PART_CHARS) {
      head.push(line);
      headChars += log.length;
      return;
    }
    tail.push(line);
    tailChars += log.length;
    while (tailChars > MAX_PART_CHARS) tailChars -= tail.shift()?.log.length ?? 0;
  }

  return {
    /** Sets the function that edits lines written from now on. */
    useEdit(next: EditLine): void {
      edit = next;
    },
    /** Appends output: several lines, or part of one. */
    write(text: string): void {
      open += text;
      for (;;) {
        const newline = open.indexOf('\n');
        const end = newline === -1 ? MAX_LINE_CHARS : Math.min(newline + 1, MAX_LINE_CHARS);
        if (newline === -1 && open.length <= MAX_LINE_CHARS) return;
        const line = open.slice(0, end);
        open = open.slice(end);
        // The engine prints an empty line after each line that is its own message.
        if (line !== '\n') add(line);
      }
    },
    /** Adds the last line if it does not end with a line break. */
    end(): void {
      if (open !== '') add(`${open}\n`);
      open = '';
    },
    /** Retained lines in order. */
    list: (): BuildLine[] => [...head, ...tail],
    /** Number of all lines, including dropped ones. */
    count: () => seq,
  };
}
