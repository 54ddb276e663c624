/**
 * Reads a process's configuration from environment variables, checked by one zod schema, and implements
 * `--check-config` and `--print-config`.
 */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { messageOf } from './errors.ts';
import { nearestName } from './nearest-name.ts';
import { redactSecret, withoutUrlSecrets, withServiceCredentials } from './secrets.ts';

/**
 * An unusable configuration. The message names each wrong variable, its value and what is allowed. Print it and exit
 * with `CONFIG_REFUSED`.
 */
export class ConfigError extends Error {
  override name = 'ConfigError';
  /** The invalid variables; empty if the error has another cause. */
  readonly problems: readonly ConfigProblem[];
  constructor(
    message: string,
    options: ErrorOptions & { problems?: readonly ConfigProblem[] } = {},
  ) {
    super(message, options);
    this.problems = options.problems ?? [];
  }
}

/** Exit status for an invalid configuration; systemd does not restart the process. */
export const CONFIG_REFUSED = 6;
/** Exit status for a failure that a restart may resolve, such as a port in use or an unreachable database. */
const FAILED = 1;

/** Returns the exit status for a fatal error. */
export function exitStatusOf(error: unknown): number {
  return error instanceof ConfigError ? CONFIG_REFUSED : FAILED;
}

/** A variable that is invalid, missing or unknown; `message` begins with its name. */
export type ConfigProblem = { name: string; message: string };

export type Environment = Record<string, string | undefined>;

/** Returns the variables that are set, as a child process's environment. */
export function definedVariables(environment: Environment): Record<string, string> {
  const set = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return Object.fromEntries(set);
}

type ConfigShape = Record<string, z.ZodType>;

/** The variables of a process. */
export type ConfigSpec<Shape extends ConfigShape> = {
  schema: z.ZodObject<Shape>;
  /** Every variable of the process begins with it. */
  prefix: string;
  /** Names with this prefix that are variables of other programs. */
  foreign?: ReadonlySet<string>;
  /** Checks variables in combination; `right` contains those that passed their own schema. */
  rules?(right: Partial<z.output<z.ZodObject<Shape>>>, isSet: IsSet): readonly ConfigProblem[];
};

/** Returns true if the variable is set, even to an invalid value. */
export type IsSet = (name: string) => boolean;

/** A variable in effect. `value` is safe to print: secrets are redacted. Null if there is no value. */
export type Setting = {
  name: string;
  value: string | null;
  source: 'default' | 'environment' | 'file';
};

export type ConfigReport<Config> = {
  /** Null if there are problems. */
  config: Config | null;
  settings: readonly Setting[];
  problems: readonly ConfigProblem[];
  /** Unknown variables, each with the closest known name. */
  warnings: readonly ConfigProblem[];
};

/**
 * Suffix of a variable that names a file with the secret, such as a systemd credential: `NAME_FILE` instead of `NAME`.
 */
const FILE_SUFFIX = '_FILE';
const MAX_FILE_BYTES = 65_536;
const MAX_SHOWN_CHARS = 200;

const secrets = z.registry<{ isSecret: true }>();

/** Marks a variable as secret: its value is never printed, and it can be read from a file. */
export function secret<Schema extends z.ZodType>(schema: Schema): Schema {
  secrets.add(schema, { isSecret: true });
  return schema;
}

/** Reads and checks the whole configuration in one pass. An empty value counts as unset. */
export function inspectConfig<Shape extends ConfigShape>(
  spec: ConfigSpec<Shape>,
  variables: Environment,
): ConfigReport<z.output<z.ZodObject<Shape>>> {
  const environment = withServiceCredentials(variables);
  const fields = Object.entries<z.ZodType>(spec.schema.shape);
  const problems: ConfigProblem[] = [];
  const settings: Setting[] = [];
  const right: Record<string, unknown> = {};
  for (const [name, schema] of fields) {
    const { text, source, problem } = readVariable(name, schema, environment);
    const parsed = schema.safeParse(text);
    if (problem !== null) problems.push({ name, message: problem });
    else if (parsed.success) right[name] = parsed.data;
    else problems.push({ name, message: refusal(name, schema, text, parsed.error) });
    settings.push({ name, value: shownValue(schema, text), source });
  }
  const isSet = (name: string) => Boolean(environment[name] || environment[name + FILE_SUFFIX]);
  // The cast is safe: each member has just passed its own schema.
  type Config = z.output<z.ZodObject<Shape>>;
  problems.push(...(spec.rules?.(right as Partial<Config>, isSet) ?? []));
  return {
    config: problems.length === 0 ? (right as Config) : null,
    settings,
    problems,
    warnings: unknownIn(spec, fields, environment),
  };
}

/**
 * Returns every secret value, valid or not, to redact from text that leaves the machine. For a URL, returns its
 * password as written and percent-decoded.
 */
export function configuredSecrets<Shape extends ConfigShape>(
  { schema }: ConfigSpec<Shape>,
  environment: Environment,
): string[] {
  return Object.entries<z.ZodType>(schema.shape).flatMap(([name, field]) => {
    const { text } = readVariable(name, field, withServiceCredentials(environment));
    if (text === undefined || !secrets.has(field)) return [];
    const { password = '' } = URL.parse(text) ?? {};
    return [text, password, decodedOr(password)];
  });
}

/** Percent-decodes `text`, or returns it unchanged if it contains a bare `%`. */
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
  return acceptedConfig(inspectConfig(spec, environment), []);
}

/** Returns the configuration. Throws ConfigError listing its problems and `further` problems, as `runConfigCommand`. */
export function acceptedConfig<Config>(
  { config, problems }: Pick<ConfigReport<Config>, 'config' | 'problems'>,
  further: readonly string[],
): Config {
  if (config !== null && further.length === 0) return config;
  throw configError(problems, further);
}

export function configError(
  problems: readonly ConfigProblem[],
  further: readonly string[] = [],
): ConfigError {
  const lines = [...problems.map(({ message }) => message), ...further].join('\n  ');
  return new ConfigError(`configuration refused:\n  ${lines}`, { problems });
}

/** Returns a problem if only some of the variables are set; for `rules`. */
export function allOrNone(names: readonly string[], isSet: IsSet): ConfigProblem[] {
  const missing = names.filter((name) => !isSet(name));
  const [name] = missing;
  if (name === undefined || missing.length === names.length) return [];
  return [
    { name, message: `${missing.join(', ')}: not set; set all of ${names.join(', ')}, or none` },
  ];
}

type RawValue = { text: string | undefined; source: Setting['source']; problem: string | null };

/** Reads a variable from the environment or, for a secret, from its file. */
function readVariable(name: string, schema: z.ZodType, environment: Environment): RawValue {
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
    return { text: readSecretFile(path), source: 'file', problem: null };
  } catch (error) {
    const problem = `${name}${FILE_SUFFIX} (${path}): ${messageOf(error)}`;
    return { text: undefined, source: 'file', problem };
  }
}

/** Throws unless it is a regular file with one short text: reading a pipe could block forever. */
function readSecretFile(path: string): string {
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
  if (text === undefined) return `${name} (not set): required`;
  const why = [...new Set(issues.map(({ message }) => message))].join('; ');
  return `${name} (${shownText(schema, text)}): ${why}`;
}

/** Quotes and truncates a value, with secrets redacted. */
function shownText(schema: z.ZodType, text: string): string {
  if (secrets.has(schema)) return redactSecret(text);
  return JSON.stringify(withoutUrlSecrets(text).slice(0, MAX_SHOWN_CHARS));
}

function shownValue(schema: z.ZodType, text: string | undefined): string | null {
  if (text !== undefined) return secrets.has(schema) ? redactSecret(text) : withoutUrlSecrets(text);
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
      const suggestion = nearest === null ? '' : `; did you mean ${prefix}${nearest}?`;
      return { name, message: `${name}: unknown variable, ignored${suggestion}` };
    });
}

export const CONFIG_COMMANDS = ['--check-config', '--print-config'] as const;
export type ConfigCommand = (typeof CONFIG_COMMANDS)[number];

export type Printer = { out(text: string): void; error(text: string): void };

/** Lines for `--help`. */
export const CONFIG_COMMANDS_HELP = `--check-config   print every problem of the configuration and exit (status 0 or ${CONFIG_REFUSED})
--print-config   print every variable in effect and its source, without secrets, and exit`;

/**
 * Runs the command and returns its exit status. `further`: problems that are not about variables, such as those of
 * policy files.
 */
export function runConfigCommand(
  command: ConfigCommand,
  { settings, problems, warnings }: ConfigReport<unknown>,
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

/** Formats one line per variable. */
export function settingsText(settings: readonly Setting[]): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  const line = ({ name, value, source }: Setting) =>
    `${name.padEnd(width)}  ${source.padEnd('environment'.length)}  ${value ?? '(not set)'}`;
  return `${settings.map(line).join('\n')}\n`;
}

/** Logs the unknown variables. */
export function logConfigWarnings(
  warnings: readonly ConfigProblem[],
  log: { warn(message: string): void },
): void {
  for (const { message } of warnings) log.warn(message);
}

/** Runs every function and returns the messages of the errors thrown; for problems that are not about variables. */
export function errorMessages(...work: readonly (() => unknown)[]): string[] {
  return work.flatMap((each) => {
    try {
      each();
      return [];
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  });
}
