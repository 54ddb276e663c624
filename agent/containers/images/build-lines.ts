/** The lines of a build's output, bounded: the first and the last ones are kept. */

/** `seq` counts the lines of one build without a hole: one that is missing was dropped. */
export type BuildLine = { seq: number; ms: number; log: string };

/** Of the beginning and of the end, each in characters. */
export const MAX_PART_CHARS = 512 * 1024;
/** Longer lines are split. */
const MAX_LINE_CHARS = 16 * 1024;

export type BuildLines = ReturnType<typeof createBuildLines>;

/** How a whole line is to be shown; null: not at all. */
export type EditLine = (line: string) => string | null;

/** `nowMs` stamps each line. */
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
    /** Every later line passes through it. */
    useEdit(next: EditLine): void {
      edit = next;
    },
    /** Output as it comes: several lines, or part of one. */
    write(text: string): void {
      open += text;
      for (;;) {
        const newline = open.indexOf('\n');
        const end = newline === -1 ? MAX_LINE_CHARS : Math.min(newline + 1, MAX_LINE_CHARS);
        if (newline === -1 && open.length <= MAX_LINE_CHARS) return;
        const line = open.slice(0, end);
        open = open.slice(end);
        // The engine ends each of its own lines with an empty one.
        if (line !== '\n') add(line);
      }
    },
    /** A line that was begun and will not be continued. */
    end(): void {
      if (open !== '') add(`${open}\n`);
      open = '';
    },
    /** All that is kept, in order. */
    list: (): BuildLine[] => [...head, ...tail],
    /** How many there were. */
    count: () => seq,
  };
}
