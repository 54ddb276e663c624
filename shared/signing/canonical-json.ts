/** Canonical JSON: sorted keys, no white space, safe integers only (validator reference 4.2, 7). Pure. */

const CANONICAL: JsonStyle = {
  comma: ',',
  colon: ':',
  string: (text: string) => JSON.stringify(text),
  isNative: true,
};

/** The one text of `value`; keys in the order of their UTF-16 units. Throws TypeError for fractions and undefined. */
export function canonicalJson(value: unknown): string {
  return writeJson(value, CANONICAL);
}

/** The value of a text that is canonical, or null: white space, other orders and doubled keys are refused. */
export function parseCanonicalJson(text: string): { value: JsonValue } | null {
  try {
    const value = JSON.parse(text) as JsonValue;
    return canonicalJson(value) === text ? { value } : null;
  } catch {
    return null;
  }
}

/** Writes JSON as a text that two programs agree on byte for byte: what may be signed or hashed. Pure. */

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** How one of the texts differs from another. */
export type JsonStyle = {
  comma: string;
  colon: string;
  /** A string with its quotes. */
  string(text: string): string;
  /** The order of keys; that of their UTF-16 units when absent. */
  compare?(a: string, b: string): number;
  /** JSON.stringify writes the same of what is in order already, several times as fast. */
  isNative?: true;
};

/** Deeper values are refused, so that none from outside can exhaust the stack. */
const MAX_DEPTH = 64;

/** Throws TypeError for whatever has more than one spelling: fractions, unsafe integers, undefined, anything but JSON. */
export function writeJson(value: unknown, style: JsonStyle, depth = 0): string {
  if (depth > MAX_DEPTH) throw new TypeError(`nested deeper than ${MAX_DEPTH}`);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return style.string(value);
  if (typeof value === 'number') return integer(value);
  if (Array.isArray(value)) {
    // Cycles of whole fleets are hashed, as they were parsed from such texts.
    if (style.isNative && isWritten(value, depth)) return JSON.stringify(value);
    return `[${joined(value, style, depth)}]`;
  }
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} is no JSON`);
  return `{${members(value as Readonly<Record<string, unknown>>, style, depth)}}`;
}

function joined(values: readonly unknown[], style: JsonStyle, depth: number): string {
  let text = '';
  for (const child of values) {
    if (text !== '') text += style.comma;
    text += writeJson(child, style, depth + 1);
  }
  return text;
}

function members(
  value: Readonly<Record<string, unknown>>,
  style: JsonStyle,
  depth: number,
): string {
  let text = '';
  for (const key of keysInOrder(value, style)) {
    if (text !== '') text += style.comma;
    text += style.string(key) + style.colon + writeJson(value[key], style, depth + 1);
  }
  return text;
}

/** What was parsed from such a text is in order already. */
function keysInOrder(value: object, { compare }: JsonStyle): string[] {
  const keys = Object.keys(value);
  return compare === undefined && isAscending(keys) ? keys : keys.sort(compare);
}

function isAscending(keys: readonly string[]): boolean {
  for (let at = 1; at < keys.length; at += 1) {
    if ((keys[at - 1] ?? '') >= (keys[at] ?? '')) return false;
  }
  return true;
}

/** Whether JSON.stringify writes it as it is to be: plain, in order, of safe integers, not too deep. */
function isWritten(value: unknown, depth: number): boolean {
  if (depth > MAX_DEPTH) return false;
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true;
  if (typeof value === 'number') return Number.isSafeInteger(value);
  if (typeof value !== 'object') return false;
  if (Array.isArray(value)) return areWritten(value, depth);
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  if (!isAscending(Object.keys(value))) return false;
  return areWritten(Object.values(value), depth);
}

function areWritten(children: readonly unknown[], depth: number): boolean {
  for (const child of children) {
    if (!isWritten(child, depth + 1)) return false;
  }
  return true;
}

function integer(value: number): string {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is no safe integer`);
  return String(value);
}

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

const PYTHON = {
  comma: ', ',
  colon: ': ',
  string: (text: string) => `"${text.replace(TO_ESCAPE, escapeUnit)}"`,
  // UTF-8 keeps the order of code points, which is Python's; that of UTF-16 units differs above U+FFFF.
  compare: (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b)),
};

/** Throws TypeError for fractions: Python and we would spell them differently. */
export function pythonJson(value: unknown): string {
  return writeJson(value, PYTHON);
}

function escapeUnit(unit: string): string {
  return SHORT_ESCAPES[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
