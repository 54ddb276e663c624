/** JSON as Python's json.dumps(value, sort_keys=True) writes it: the text that set weights are signed over (contract 11). Pure. */
import { writeJson } from './json-text.ts';

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};
/** One UTF-16 unit at a time, so that pairs are written as two escapes. */
const TO_ESCAPE = /["\\]|[^\x20-\x7e]/g;

const STYLE = {
  comma: ', ',
  colon: ': ',
  string: (text: string) => `"${text.replace(TO_ESCAPE, escapeUnit)}"`,
  // UTF-8 keeps the order of code points, which is Python's; that of UTF-16 units differs above U+FFFF.
  compare: (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b)),
};

/** Throws TypeError for fractions: Python and we would spell them differently. */
export function pythonJson(value: unknown): string {
  return writeJson(value, STYLE);
}

function escapeUnit(unit: string): string {
  return SHORT_ESCAPES[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
