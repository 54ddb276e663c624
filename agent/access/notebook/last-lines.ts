/** The end of a program's output, small and fit to be shown. Pure. */

const MAX_BYTES = 16_384;
const MAX_LINES = 15;
const MAX_CHARS = 2_000;

/** Keeps the last bytes of what is added. */
export function createTail() {
  let kept = Buffer.alloc(0);
  return {
    add(data: Uint8Array): void {
      kept = Buffer.concat([kept, data]).subarray(-MAX_BYTES);
    },
    all: () => kept.toString('utf8'),
  };
}

/** The last lines without colours, progress bars and other control characters. */
export function lastLines(text: string): string {
  return (
    text
      // ESC is the only control character before a bracket that means anything.
      .replace(/\p{Cc}\[[0-9;?]*[A-Za-z]/gu, '')
      .split(/[\r\n]+/)
      .map((line) => line.replace(/\p{Cc}/gu, '').trim())
      .filter((line) => line !== '')
      .slice(-MAX_LINES)
      .join('\n')
      .slice(-MAX_CHARS)
  );
}
