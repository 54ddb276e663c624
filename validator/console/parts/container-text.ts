/** Reads environments and ports that are typed into a form, and writes them. Pure. */

/** Content of a text, and one sentence for each part that cannot be read. */
export type Read<Value> = { value: Value; problems: readonly string[] };

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MAX_PORT = 65_535;
/** Further problems are counted. */
const MAX_PROBLEMS = 10;

/** One `NAME=value` per line, by name. */
export function environmentText(environment: Record<string, string>): string {
  return Object.entries(environment)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');
}

/** Reads lines `NAME=value`. Empty lines and lines that begin with `#` are skipped. */
export function readEnvironment(text: string): Read<Record<string, string>> {
  const value: Record<string, string> = {};
  const problems: string[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const equals = line.indexOf('=');
    const name = line.slice(0, equals).trim();
    if (equals === -1) problems.push(`Line ${at + 1} is not NAME=value.`);
    else if (!NAME.test(name)) {
      problems.push(`Line ${at + 1}: “${name}” is not a name of a variable.`);
    } else if (Object.hasOwn(value, name)) problems.push(`Line ${at + 1} sets ${name} again.`);
    else value[name] = line.slice(equals + 1);
  }
  return { value, problems: firstOf(problems, 'lines') };
}

/** Reads ports between commas or spaces. */
export function readPorts(text: string): Read<number[]> {
  const value: number[] = [];
  const problems: string[] = [];
  for (const word of text.split(/[\s,]+/).filter((each) => each !== '')) {
    const port = Number(word);
    if (!/^\d+$/.test(word) || port < 1 || port > MAX_PORT) {
      problems.push(`“${word}” is not a port. Ports are 1 to ${MAX_PORT}.`);
    } else if (value.includes(port)) problems.push(`Port ${port} is listed twice.`);
    else value.push(port);
  }
  return { value, problems: firstOf(problems, 'ports') };
}

function firstOf(problems: readonly string[], what: string): readonly string[] {
  const further = problems.length - MAX_PROBLEMS;
  if (further <= 0) return problems;
  return [...problems.slice(0, MAX_PROBLEMS), `${further} further ${what} cannot be read.`];
}
