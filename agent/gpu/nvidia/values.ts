/** Single values as nvidia-smi prints them. What is not known is null, never 0. Pure. */

/** Every driver has its own words for "no value", and new ones appear. */
const NO_VALUE =
  /^(?:|none|err!|\[.*\]|(?:n\/a|not (?:supported|available)|unknown error|gpu is lost|insufficient permissions|requested functionality has been deprecated)\.?)$/i;

/** No driver's word is as long; it goes into our store, answers and metrics. */
export const MAX_VALUE_CHARS = 256;

/** The text, cut at MAX_VALUE_CHARS, or null where the driver gives none. */
export function textOf(printed: string | undefined): string | null {
  const text = printed?.trim().slice(0, MAX_VALUE_CHARS) ?? '';
  return text === '' || NO_VALUE.test(text) ? null : text;
}

/** A number with or without its unit (`81559 MiB`); null for anything else. */
export function numberOf(printed: string | undefined): number | null {
  const digits = /^(-?\d{1,12}(?:\.\d{1,9})?)(?: ?(?:MiB|W|C|%|MHz))?$/.exec(printed?.trim() ?? '');
  return digits?.[1] === undefined ? null : Number(digits[1]);
}

/** As `numberOf`, for what cannot be below 0: some drivers print negative limits. */
export function amountOf(printed: string | undefined): number | null {
  const number = numberOf(printed);
  return number === null || number < 0 ? null : number;
}

/** As `amountOf`, whole. */
export function countOf(printed: string | undefined): number | null {
  const number = amountOf(printed);
  return number === null ? null : Math.round(number);
}

/** The first of `names` with an amount. */
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
