/** Canonical JSON: sorted keys, no white space, safe integers only (validator reference 4.2, 7). Pure. */
import { type JsonStyle, type JsonValue, writeJson } from './json-text.ts';

const STYLE: JsonStyle = {
  comma: ',',
  colon: ':',
  string: (text: string) => JSON.stringify(text),
  isNative: true,
};

/** The one text of `value`; keys in the order of their UTF-16 units. Throws TypeError for fractions and undefined. */
export function canonicalJson(value: unknown): string {
  return writeJson(value, STYLE);
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
