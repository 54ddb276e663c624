/**
 * JSON as reproducible text, for signing and hashing. Two forms: canonical JSON (sorted keys, no white space, safe
 * integers only), and the spelling of Python's json.dumps. Pure.
 */

const CANONICAL: JsonStyle = {
  comma: ',',
  colon: ':',
  string: (text: string) => JSON.stringify(text),
  isNative: true,
};

/**
 * Writes canonical JSON, keys ordered by UTF-16 units. Throws TypeError for fractions, undefined and non-JSON values.
 */
export function canonicalJson(value: unknown): string {
  return writeJson(value, CANONICAL);
}

/** Parses canonical JSON. Null for any other text: white space, another order, duplicate keys. */
export function parseCanonicalJson(text: string): { value: JsonValue } | null {
  try {
    const value = JSON.parse(text) as JsonValue;
    return canonicalJson(value) === text ? { value } : null;
  } catch {
    return null;
  }
}

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** Differences between canonical JSON and Python's JSON. */
export type JsonStyle = {
  comma: string;
  colon: string;
  /** Writes a string with its quotes. */
  string(text: string): string;
  /** Order of keys; default: by UTF-16 units. */
  compare?(a: string, b: string): number;
  /** True if JSON.stringify writes the same text for ordered values. It is several times as fast. */
  isNative?: true;
};

/** Limits recursion, so that untrusted values cannot exhaust the stack. */
const MAX_DEPTH = 64;

/** Throws TypeError for values with more than one spelling: fractions, unsafe integers, undefined, non-JSON values. */
export function writeJson(value: unknown, style: JsonStyle, depth = 0): string {
  if (depth > MAX_DEPTH) throw new TypeError(`nested deeper than ${MAX_DEPTH}`);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return style.string(value);
  if (typeof value === 'number') return integer(value);
  if (Array.isArray(value)) {
    // Fast path: large lists that are hashed were usually parsed from canonical JSON.
    if (style.isNative && isCanonical(value, depth)) return JSON.stringify(value);
    return `[${joined(value, style, depth)}]`;
  }
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} is not JSON`);
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

/** Returns the keys in order. Does not sort keys that already are, as in values parsed from canonical JSON. */
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

/**
 * Returns true if JSON.stringify writes the canonical text: plain objects, keys in order, safe integers, limited
 * depth.
 */
function isCanonical(value: unknown, depth: number): boolean {
  if (depth > MAX_DEPTH) return false;
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true;
  if (typeof value === 'number') return Number.isSafeInteger(value);
  if (typeof value !== 'object') return false;
  if (Array.isArray(value)) return areCanonical(value, depth);
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  if (!isAscending(Object.keys(value))) return false;
  return areCanonical(Object.values(value), depth);
}

function areCanonical(children: readonly unknown[], depth: number): boolean {
  for (const child of children) {
    if (!isCanonical(child, depth + 1)) return false;
  }
  return true;
}

function integer(value: number): string {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is not a safe integer`);
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
/** Matches one UTF-16 unit, so that a surrogate pair becomes two escapes. */
const TO_ESCAPE = /["\\]|[^\x20-\x7e]/g;

const PYTHON = {
  comma: ', ',
  colon: ': ',
  string: (text: string) => `"${text.replace(TO_ESCAPE, escapeUnit)}"`,
  // Python orders by code points, as UTF-8 does; UTF-16 units order differently above U+FFFF.
  compare: (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b)),
};

/**
 * Writes JSON as Python's json.dumps(value, sort_keys=True); set weights are signed over this text. Throws TypeError
 * for fractions, which Python writes differently.
 */
export function pythonJson(value: unknown): string {
  return writeJson(value, PYTHON);
}

function escapeUnit(unit: string): string {
  return SHORT_ESCAPES[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
