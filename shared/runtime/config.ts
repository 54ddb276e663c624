/** Reads one process's configuration from environment variables through its one zod schema. */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { messageOf } from './errors.ts';
import { nearestName } from './nearest-name.ts';
import { hidden, withOwnCredentials, withoutUrlSecrets } from './secrets.ts';

/** Its message names every wrong variable, its value and what is allowed: print it and exit with `CONFIG_REFUSED`. */
export class ConfigError extends Error {
  override name = 'ConfigError';
  /** The variables that were refused; empty for refusals of any other kind. */
  readonly problems: readonly ConfigProblem[];
  constructor(
    message: string,
    options: ErrorOptions & { problems?: readonly ConfigProblem[] } = {},
  ) {
    super(message, options);
    this.problems = options.problems ?? [];
  }
}

/** Exit status of a process whose configuration is refused; systemd does not start it again. */
export const CONFIG_REFUSED = 6;
/** And of one that may do better the next time: started again, it finds a port free, a database back, a folder left. */
const FAILED = 1;

/** Of a process that `error` ends. */
export function exitStatusOf(error: unknown): number {
  return error instanceof ConfigError ? CONFIG_REFUSED : FAILED;
}

/** One variable that is wrong, missing or unknown; `message` begins with its name. */
export type ConfigProblem = { name: string; message: string };

export type Environment = Record<string, string | undefined>;

/** The variables that are set, for a child that is to have them, too. */
export function definedIn(environment: Environment): Record<string, string> {
  const set = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return Object.fromEntries(set);
}

/** By the full names of the variables. */
type ConfigShape = Record<string, z.ZodType>;

/** The variables of one process. */
export type ConfigSpec<Shape extends ConfigShape> = {
  schema: z.ZodObject<Shape>;
  /** Of every variable of this process. */
  prefix: string;
  /** Names with that prefix that are somebody else's. */
  foreign?: ReadonlySet<string>;
  /** What variables have to be like together; `right` holds those that are right by themselves. */
  rules?(right: Partial<z.output<z.ZodObject<Shape>>>, isGiven: IsGiven): readonly ConfigProblem[];
};

/** Whether a variable is set, right or wrong. */
export type IsGiven = (name: string) => boolean;

/** A variable as it counts: `value` is text to show, secrets hidden; null when there is none. */
export type Setting = {
  name: string;
  value: string | null;
  source: 'default' | 'environment' | 'file';
};

export type ConfigLook<Config> = {
  /** Null when there are problems. */
  config: Config | null;
  settings: readonly Setting[];
  problems: readonly ConfigProblem[];
  /** Variables that nobody reads, each with the name that may have been meant. */
  warnings: readonly ConfigProblem[];
};

/** A secret may be given in a file, as a credential of systemd's: `NAME_FILE` in place of `NAME`. */
const FILE_SUFFIX = '_FILE';
const MAX_FILE_BYTES = 65_536;
const MAX_SHOWN_CHARS = 200;

const secrets = z.registry<{ isSecret: true }>();

/** Marks a variable whose value is shown nowhere, and may be given in a file. */
export function secret<Schema extends z.ZodType>(schema: Schema): Schema {
  secrets.add(schema, { isSecret: true });
  return schema;
}

/** Everything there is to say about a configuration, in one pass. An empty value counts as unset. */
export function lookAtConfig<Shape extends ConfigShape>(
  spec: ConfigSpec<Shape>,
  given: Environment,
): ConfigLook<z.output<z.ZodObject<Shape>>> {
  const environment = withOwnCredentials(given);
  const fields = Object.entries<z.ZodType>(spec.schema.shape);
  const problems: ConfigProblem[] = [];
  const settings: Setting[] = [];
  const right: Record<string, unknown> = {};
  for (const [name, schema] of fields) {
    const { text, source, problem } = givenOf(name, schema, environment);
    const parsed = schema.safeParse(text);
    if (problem !== null) problems.push({ name, message: problem });
    else if (parsed.success) right[name] = parsed.data;
    else problems.push({ name, message: refusal(name, schema, text, parsed.error) });
    settings.push({ name, value: shownValue(schema, text), source });
  }
  const isGiven = (name: string) => Boolean(environment[name] || environment[name + FILE_SUFFIX]);
  // Each member has just passed its own schema.
  type Config = z.output<z.ZodObject<Shape>>;
  problems.push(...(spec.rules?.(right as Partial<Config>, isGiven) ?? []));
  return {
    config: problems.length === 0 ? (right as Config) : null,
    settings,
    problems,
    warnings: unknownIn(spec, fields, environment),
  };
}

/** Secrets as they are given, right or wrong, to be looked for in what leaves the machine. */
export function secretTexts<Shape extends ConfigShape>(
  { schema }: ConfigSpec<Shape>,
  environment: Environment,
): string[] {
  return Object.entries<z.ZodType>(schema.shape).flatMap(([name, field]) => {
    const { text } = givenOf(name, field, withOwnCredentials(environment));
    if (text === undefined || !secrets.has(field)) return [];
    const { password = '' } = URL.parse(text) ?? {};
    return [text, password, decodedOr(password)];
  });
}

/** `text` itself where it is not percent-encoded: a password may hold a bare `%`. */
function decodedOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Throws ConfigError listing all problems at once. */
export function parseConfig<Shape extends ConfigShape>(
  spec: ConfigSpec<Shape>,
  environment: Environment,
): z.output<z.ZodObject<Shape>> {
  const { config, problems } = lookAtConfig(spec, environment);
  if (config !== null) return config;
  throw refusedFor(problems);
}

export function refusedFor(problems: readonly ConfigProblem[]): ConfigError {
  const lines = problems.map(({ message }) => message).join('\n  ');
  return new ConfigError(`configuration refused:\n  ${lines}`, { problems });
}

/** The problem of a group of variables of which only some are set, or none; for `rules`. */
export function allOrNone(names: readonly string[], isGiven: IsGiven): ConfigProblem[] {
  const missing = names.filter((name) => !isGiven(name));
  const [name] = missing;
  if (name === undefined || missing.length === names.length) return [];
  return [{ name, message: `${missing.join(', ')}: set them too, or none of ${names.join(', ')}` }];
}

type Given = { text: string | undefined; source: Setting['source']; problem: string | null };

/** What a variable was given, in the environment or in a file. */
function givenOf(name: string, schema: z.ZodType, environment: Environment): Given {
  const text = environment[name] || undefined;
  const path = secrets.has(schema) ? environment[name + FILE_SUFFIX] || undefined : undefined;
  if (path === undefined) {
    return { text, source: text === undefined ? 'default' : 'environment', problem: null };
  }
  if (text !== undefined) {
    const problem = `${name} and ${name}${FILE_SUFFIX}: set one of them`;
    return { text, source: 'environment', problem };
  }
  try {
    return { text: contentOf(path), source: 'file', problem: null };
  } catch (error) {
    const problem = `${name}${FILE_SUFFIX} (${path}): ${messageOf(error)}`;
    return { text: undefined, source: 'file', problem };
  }
}

/** Throws unless it is a file with one short text: to read a pipe would wait for whoever writes it. */
function contentOf(path: string): string {
  const status = statSync(path);
  if (!status.isFile()) throw new Error('not a file');
  const content = status.size > MAX_FILE_BYTES ? '' : readFileSync(path, 'utf8').trim();
  if (content === '' || content.includes('\0')) throw new Error('not one short text');
  return content;
}

function refusal(
  name: string,
  schema: z.ZodType,
  text: string | undefined,
  { issues }: z.ZodError,
): string {
  const why = [...new Set(issues.map(({ message }) => message))].join('; ');
  if (text !== undefined) return `${name} (${shownText(schema, text)}): ${why}`;
  return `${name} (not set): required${why.includes('received undefined') ? '' : `: ${why}`}`;
}

/** Quoted, bounded, without what nobody is to see. */
function shownText(schema: z.ZodType, text: string): string {
  if (secrets.has(schema)) return hidden(text);
  return JSON.stringify(withoutUrlSecrets(text).slice(0, MAX_SHOWN_CHARS));
}

function shownValue(schema: z.ZodType, text: string | undefined): string | null {
  if (text !== undefined) return secrets.has(schema) ? hidden(text) : withoutUrlSecrets(text);
  const { def } = schema as z.ZodType & { def: { defaultValue?: unknown } };
  const value = def.defaultValue ?? schema.safeParse(undefined).data;
  if (value === undefined) return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function unknownIn<Shape extends ConfigShape>(
  { prefix, foreign }: ConfigSpec<Shape>,
  fields: readonly (readonly [string, z.ZodType])[],
  environment: Environment,
): ConfigProblem[] {
  const known = fields.flatMap(([name, schema]) =>
    secrets.has(schema) ? [name, name + FILE_SUFFIX] : [name],
  );
  const names = new Set(known);
  return Object.keys(environment)
    .filter((name) => name.startsWith(prefix) && !names.has(name) && foreign?.has(name) !== true)
    .map((name) => {
      const bare = (text: string) => text.slice(prefix.length);
      const nearest = nearestName(bare(name), known.map(bare));
      const meant = nearest === null ? '' : `; is ${prefix}${nearest} meant?`;
      return { name, message: `${name}: unknown variable, nobody reads it${meant}` };
    });
}

// MERGED shared/runtime/config.ts: What every process does for `--check-config` and `--print-config`, and where it finds its configuration refused.
export const CONFIG_COMMANDS = ['--check-config', '--print-config'] as const;
export type ConfigCommand = (typeof CONFIG_COMMANDS)[number];

export type Printer = { out(text: string): void; error(text: string): void };

/** For `--help`. */
export const CONFIG_COMMANDS_HELP = `--check-config   say all that is wrong with the configuration, and stop (exit status 0 or ${CONFIG_REFUSED})
--print-config   print every variable as it counts and where it comes from, without secrets, and stop`;

/** Its exit status. `further`: problems beyond variables, as of the files that they name. */
export function runConfigCommand(
  command: ConfigCommand,
  { settings, problems, warnings }: ConfigLook<unknown>,
  further: readonly string[],
  { out, error }: Printer,
): number {
  if (command === '--print-config') out(settingsText(settings));
  for (const { message } of warnings) error(`warning: ${message}\n`);
  const wrong = [...problems.map(({ message }) => message), ...further];
  if (wrong.length > 0) {
    error(`configuration refused:\n  ${wrong.join('\n  ')}\n`);
    return CONFIG_REFUSED;
  }
  if (command === '--check-config') out('configuration accepted\n');
  return 0;
}

/** One line for each variable. */
export function settingsText(settings: readonly Setting[]): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  const line = ({ name, value, source }: Setting) =>
    `${name.padEnd(width)}  ${source.padEnd('environment'.length)}  ${value ?? '(none)'}`;
  return `${settings.map(line).join('\n')}\n`;
}

/** Says at the start which variables nobody reads. */
export function warnOfUnknown(
  warnings: readonly ConfigProblem[],
  log: { warn(message: string): void },
): void {
  for (const { message } of warnings) log.warn(message);
}

/** The words of the first error, for problems beyond variables; none when `work` succeeds. */
export function problemsOf(...work: readonly (() => unknown)[]): string[] {
  return work.flatMap((each) => {
    try {
      each();
      return [];
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  });
}
