/** Splits a command line into words as a shell would, without expanding or running anything. Pure. */

export type SplitResult = { words: string[] } | { problem: string };

/** Characters that are refused unless quoted: a shell would interpret them, but no shell runs. */
const METACHARACTERS = new Set([';', '&', '|', '<', '>', '(', ')', '$', '`', '\n', '\r']);
/** Characters that a backslash escapes within double quotes (POSIX shell, 2.2.3). */
const ESCAPABLE_IN_DOUBLE_QUOTES = new Set(['"', '\\', '$', '`']);

/**
 * Splits text: blanks and tabs separate words, and quotes and backslashes work as in a POSIX shell. Unquoted
 * metacharacters are a problem; `bash -c 'a && b'` runs such a command.
 */
export function splitShellWords(text: string): SplitResult {
  const words: string[] = [];
  let word: string | null = null;
  let at = 0;
  while (at < text.length) {
    const char = text[at] ?? '';
    if (char === ' ' || char === '\t') {
      if (word !== null) words.push(word);
      word = null;
      at += 1;
      continue;
    }
    if (METACHARACTERS.has(char)) return { problem: `unquoted ${nameOf(char)}` };
    const piece = readPiece(text, at);
    if (piece === null) return { problem: 'a quote or backslash without its end' };
    word = (word ?? '') + piece.text;
    at = piece.nextAt;
  }
  if (word !== null) words.push(word);
  return { words };
}

type Piece = { text: string; nextAt: number };

/** Reads one quoted part, one escaped character or one plain character. Returns null if the text ends within it. */
function readPiece(text: string, at: number): Piece | null {
  switch (text[at]) {
    case "'": {
      const end = text.indexOf("'", at + 1);
      return end === -1 ? null : { text: text.slice(at + 1, end), nextAt: end + 1 };
    }
    case '"':
      return readDoubleQuoted(text, at + 1);
    case '\\': {
      const escaped = text[at + 1];
      return escaped === undefined ? null : { text: escaped, nextAt: at + 2 };
    }
    default:
      return { text: text[at] ?? '', nextAt: at + 1 };
  }
}

function readDoubleQuoted(text: string, from: number): Piece | null {
  let result = '';
  for (let at = from; at < text.length; at += 1) {
    const char = text[at] ?? '';
    const next = text[at + 1];
    if (char === '"') return { text: result, nextAt: at + 1 };
    if (char === '\\' && next !== undefined && ESCAPABLE_IN_DOUBLE_QUOTES.has(next)) {
      result += next;
      at += 1;
    } else {
      result += char;
    }
  }
  return null;
}

function nameOf(char: string): string {
  return char === '\n' || char === '\r' ? 'line break' : char;
}
