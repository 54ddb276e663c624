/** Readers for the values that nvidia-smi prints. Unknown values are null, never 0. Pure. */

/** Texts that the various drivers print for "no value". */
const NO_VALUE =
  /^(?:|err!|\[.*\]|(?:n\/a|not (?:supported|available)|unknown error|gpu is lost|insufficient permissions|requested functionality has been deprecated)\.?)$/i;

/** Maximum length of a value that is stored, returned or exported as a metric; real values are shorter. */
export const MAX_VALUE_CHARS = 256;

/** Returns the text, cut at MAX_VALUE_CHARS, or null if there is no value. */
export function textOf(printed: string | undefined): string | null {
  const text = printed?.trim().slice(0, MAX_VALUE_CHARS) ?? '';
  return text === '' || NO_VALUE.test(text) ? null : text;
}

/**
 * Returns a version such as `13.3` or `610.43.02` without a remark behind it: `13.3 [Deprecated; …]`,
 * `12.4 (driver)`. Null if the text does not begin with a version.
 */
export function versionOf(printed: string | undefined): string | null {
  return /^\d{1,4}(?:\.\d{1,4}){1,3}(?![\w.])/.exec(printed?.trim() ?? '')?.[0] ?? null;
}

/** Parses a number with or without unit (`81559 MiB`); null for anything else. */
export function numberOf(printed: string | undefined): number | null {
  const digits = /^(-?\d{1,15}(?:\.\d{1,9})?)(?: ?(?:MiB|W|W\/s|C|%|MHz|us|ms|seconds))?$/.exec(
    printed?.trim() ?? '',
  );
  return digits?.[1] === undefined ? null : Number(digits[1]);
}

/** Like `numberOf`, but null for negative numbers: some drivers print negative limits. */
export function amountOf(printed: string | undefined): number | null {
  const number = numberOf(printed);
  return number === null || number < 0 ? null : number;
}

/** Like `amountOf`, rounded to an integer. */
export function countOf(printed: string | undefined): number | null {
  const number = amountOf(printed);
  return number === null ? null : Math.round(number);
}

/** Returns the first amount among `names`. */
export function firstAmount(parent: unknown, names: readonly string[]): number | null {
  for (const name of names) {
    const amount = amountOf(rawAt(parent, name));
    if (amount !== null) return amount;
  }
  return null;
}

export function child(parent: unknown, name: string): unknown {
  if (typeof parent !== 'object' || parent === null || !Object.hasOwn(parent, name))
    return undefined;
  return Reflect.get(parent, name);
}

export function rawAt(parent: unknown, name: string): string | undefined {
  const value = child(parent, name);
  return typeof value === 'string' ? value : undefined;
}

export function textAt(parent: unknown, name: string): string | null {
  return textOf(rawAt(parent, name));
}

export function listAt(parent: unknown, name: string): unknown[] {
  const value = child(parent, name);
  return Array.isArray(value) ? value : [];
}
