/** Text of log lines: removes what disturbs a view, and splits coloured lines into parts. Pure. */
import Anser from 'anser';

/** A line as the view shows it. */
export type LineText = {
  /** Without escape and control characters. */
  text: string;
  /** The text with its colour sequences; null if it has no colours. */
  coloured: string | null;
};

/** Part of a line with the same colours. `className` has the names of `logs.css`. */
export type LinePart = { text: string; className: string };

/** Start of every escape sequence. */
const ESC = String.fromCharCode(0x1b);
const BEL = String.fromCharCode(0x07);
/** Sequences that set colours and weights. */
const COLOURS = new RegExp(`${ESC}\\[[\\d;:]*m`, 'g');
/** Cursor movements, titles, links, other sequences, and a sequence that is cut off by the end of the line. */
const OTHER_ESCAPES = new RegExp(
  `${ESC}(?:\\[(?![\\d;:]*m)[0-?]*[ -/]*[@-~]|[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?|[ -/]*[0-Z\\\\^-~]|\\[[\\d;:]*$)`,
  'g',
);
/** All control characters except the tab. */
const CONTROL = /[^\P{Cc}\t]/u;
const CONTROLS = /[^\P{Cc}\t]/gu;

/** Returns the text of a line with its newline. A progress bar shows what it has written last. */
export function lineText(log: string): LineText {
  const line = log.replace(/\r?\n$/, '');
  if (!CONTROL.test(line)) return { text: line, coloured: null };
  const shown = afterReturn(line).replaceAll(OTHER_ESCAPES, '');
  const text = shown.replaceAll(COLOURS, '').replaceAll(CONTROLS, '');
  return { text, coloured: shown.search(COLOURS) === -1 ? null : shown };
}

/** A carriage return moves the cursor to the start of the line, so that the rest overwrites the line. */
function afterReturn(line: string): string {
  const parts = line.split('\r');
  return parts.findLast((part) => part !== '') ?? '';
}

/** Splits a line at its changes of colour. Together the parts have the line's text. */
export function lineParts({ text, coloured }: LineText): LinePart[] {
  if (coloured === null) return [{ text, className: '' }];
  const parts = Anser.ansiToJson(coloured, { remove_empty: true, use_classes: true });
  return parts.map(({ content, fg, bg, decorations }) => ({
    text: content.replaceAll(CONTROLS, ''),
    className: [
      ...nameOf('fg', fg),
      ...nameOf('bg', bg),
      ...decorations.map((decoration) => `ansi-${decoration}`),
    ].join(' '),
  }));
}

/** The eight colours of terminals; brighter ones have the same names. Others are shown in the colour of the text. */
const NAMED = /^ansi-(?:bright-)?(black|red|green|yellow|blue|magenta|cyan|white)$/;

function nameOf(place: 'fg' | 'bg', name: string | null): string[] {
  const [, colour] = NAMED.exec(name ?? '') ?? [];
  return colour === undefined ? [] : [`ansi-${place}-${colour}`];
}
