/** Reads and writes the state of a page in the query of its address, so that links and reloads keep it. Pure. */

export type UrlValues = Record<string, string | number | boolean>;

/** Returns the defaults, replaced by the members of the query. A member that is not of the default's type is ignored. */
export function readUrlState<Values extends UrlValues>(search: string, defaults: Values): Values {
  const query = new URLSearchParams(search);
  const entries = Object.entries(defaults).map(([name, standard]) => {
    const text = query.get(name);
    return [name, text === null ? standard : (parseLike(standard, text) ?? standard)];
  });
  return Object.fromEntries(entries) as Values;
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

function parseLike(standard: UrlValues[string], text: string): UrlValues[string] | null {
  switch (typeof standard) {
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : null;
    case 'boolean':
      return text === 'true' || text === 'false' ? text === 'true' : null;
    default:
      return text;
  }
}
