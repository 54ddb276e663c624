/** The variables that a process of a local marketplace was started with, in a file that a shell can read (`set -a`). Pure. */

export type Variables = Readonly<Record<string, string>>;

const LINE = /^([A-Z][A-Z0-9_]*)='((?:[^']|'\\'')*)'$/gm;

/** `NAME='value'` lines. */
export function shellVariables(variables: Variables): string {
  const quoted = (value: string) => `'${value.replaceAll("'", "'\\''")}'`;
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${quoted(value)}\n`)
    .join('');
}

/** What `shellVariables` wrote; any other line is passed over. */
export function variablesIn(text: string): Variables {
  const found = [...text.matchAll(LINE)].map(
    ([, name = '', value = '']) => [name, value.replaceAll("'\\''", "'")] as const,
  );
  return Object.fromEntries(found);
}
