/** Reads and writes the state of a page in the query of its address, so that links and reloads keep it. Pure. */

export type UrlValues = Record<string, string | number | boolean>;

/** Returns why a text cannot be used, for example “is not a number”; null if it can. */
export type Check = (text: string) => string | null;
/** Checks of texts, by the name of the member. */
export type Checks = Readonly<Record<string, Check>>;

export const aNumber: Check = (text) =>
  text.trim() !== '' && Number.isFinite(Number(text)) ? null : 'is not a number';

export function oneOf(values: readonly string[]): Check {
  return (text) => (values.includes(text) ? null : `is none of ${values.join(', ')}`);
}

/** Returns the defaults, replaced by the members of the query. Members that cannot be used are ignored. */
export function readUrlState<Values extends UrlValues>(
  search: string,
  defaults: Values,
  checks: Checks = {},
): Values {
  const query = new URLSearchParams(search);
  const entries = Object.entries(defaults).map(([name, standard]) => {
    const text = query.get(name);
    if (text === null || problemOf(text, standard, checks[name]) !== null) return [name, standard];
    return [name, valueLike(standard, text)];
  });
  return Object.fromEntries(entries) as Values;
}

/** Returns the members of the query that `readUrlState` ignores, each with its problem. */
export function ignoredIn(search: string, defaults: UrlValues, checks: Checks = {}): string[] {
  const query = new URLSearchParams(search);
  return Object.entries(defaults).flatMap(([name, standard]) => {
    const text = query.get(name);
    const problem = text === null ? null : problemOf(text, standard, checks[name]);
    return problem === null ? [] : [`${name}=${shortened(text ?? '')} ${problem}`];
  });
}

/** Returns the query with the values; those that equal their default are left out. Other members stay. */
export function writeUrlState<Values extends UrlValues>(
  search: string,
  values: Values,
  defaults: Values,
): string {
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(values)) {
    if (value === defaults[name]) query.delete(name);
    else query.set(name, String(value));
  }
  return query.toString();
}

/** The default of a number is its smallest value. An empty text is a default. */
function problemOf(
  text: string,
  standard: UrlValues[string],
  check: Check | undefined,
): string | null {
  if (text === '') return null;
  if (typeof standard === 'number') {
    const isUsable = /^-?\d+$/.test(text) && Number(text) >= standard;
    return isUsable ? (check?.(text) ?? null) : `is not a whole number from ${standard} on`;
  }
  if (typeof standard === 'boolean') {
    return text === 'true' || text === 'false' ? null : 'is neither true nor false';
  }
  return check?.(text) ?? null;
}

function valueLike(standard: UrlValues[string], text: string): UrlValues[string] {
  if (typeof standard === 'string') return text;
  if (text === '') return standard;
  return typeof standard === 'number' ? Number(text) : text === 'true';
}

const MAX_SHOWN_CHARS = 40;

function shortened(text: string): string {
  return text.length <= MAX_SHOWN_CHARS ? text : `${text.slice(0, MAX_SHOWN_CHARS)}…`;
}
