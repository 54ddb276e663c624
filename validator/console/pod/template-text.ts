/** Converts the environment and ports of a template to text for a form, and back. Pure. */

export type Parsed<Value> = { value: Value } | { problem: string };

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MAX_PORT = 65_535;

/** One `NAME=value` per line, by name. */
export function environmentText(environment: Record<string, string>): string {
  return Object.entries(environment)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');
}

/** Parses lines `NAME=value`. Empty lines are skipped. */
export function parseEnvironment(text: string): Parsed<Record<string, string>> {
  const value: Record<string, string> = {};
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    const name = line.slice(0, equals).trim();
    if (equals === -1) return { problem: `Line ${at + 1} has no “=”. Write NAME=value.` };
    if (!NAME.test(name))
      return { problem: `Line ${at + 1}: “${name}” is not a name of a variable.` };
    if (Object.hasOwn(value, name)) return { problem: `Line ${at + 1} sets ${name} again.` };
    value[name] = line.slice(equals + 1);
  }
  return { value };
}

/** Parses ports between commas or spaces. */
export function parsePorts(text: string): Parsed<number[]> {
  const value: number[] = [];
  for (const word of text.split(/[\s,]+/).filter((each) => each !== '')) {
    const port = Number(word);
    if (!/^\d+$/.test(word) || port < 1 || port > MAX_PORT) {
      return { problem: `“${word}” is not a port. Ports are 1 to ${MAX_PORT}.` };
    }
    if (value.includes(port)) return { problem: `Port ${port} is listed twice.` };
    value.push(port);
  }
  return { value };
}
