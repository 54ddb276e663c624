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
  /** The order of keys. */
  compare(a: string, b: string): number;
};

/** Deeper values are refused, so that none from outside can exhaust the stack. */
const MAX_DEPTH = 64;

/** Throws TypeError for whatever has more than one spelling: fractions, unsafe integers, undefined, anything but JSON. */
export function writeJson(value: unknown, style: JsonStyle, depth = 0): string {
  if (depth > MAX_DEPTH) throw new TypeError(`nested deeper than ${MAX_DEPTH}`);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return style.string(value);
  if (typeof value === 'number') return integer(value);
  const inner = (child: unknown) => writeJson(child, style, depth + 1);
  if (Array.isArray(value)) return `[${value.map(inner).join(style.comma)}]`;
  if (typeof value !== 'object') throw new TypeError(`a ${typeof value} is no JSON`);
  const members = Object.entries(value)
    .sort(([a], [b]) => style.compare(a, b))
    .map(([key, child]) => `${style.string(key)}${style.colon}${inner(child)}`);
  return `{${members.join(style.comma)}}`;
}

function integer(value: number): string {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is no safe integer`);
  return String(value);
}
