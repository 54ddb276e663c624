/** Reads one process's configuration from environment variables through a zod schema. */
import type { z } from 'zod';

/** Its message names every wrong variable, its value and what is allowed: print it and exit. */
export class ConfigError extends Error {
  override name = 'ConfigError';
  /** The variables that `parseConfig` refused; empty for refusals of any other kind. */
  readonly problems: readonly ConfigProblem[];
  constructor(
    message: string,
    options: ErrorOptions & { problems?: readonly ConfigProblem[] } = {},
  ) {
    super(message, options);
    this.problems = options.problems ?? [];
  }
}

/** One variable that is wrong, missing or unknown; `message` begins with its name. */
export type ConfigProblem = { name: string; message: string };

/**
 * Parses the variables of `schema` (keys are full variable names). An empty value counts as unset.
 * Throws ConfigError listing all problems at once, unknown variables with `prefix` included.
 */
export function parseConfig<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  environment: Record<string, string | undefined>,
  prefix: string,
): z.output<z.ZodObject<Shape>> {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([name, value]) => name.startsWith(prefix) && value !== ''),
  );
  const known = new Set(Object.keys(schema.shape));
  const names = [...known].sort().join(', ');
  const problems: ConfigProblem[] = Object.keys(given)
    .filter((name) => !known.has(name))
    .map((name) => ({ name, message: `${name}: unknown variable; known ones are ${names}` }));

  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const name = String(issue.path[0] ?? prefix);
      const shown = given[name] === undefined ? 'not set' : JSON.stringify(given[name]);
      problems.push({ name, message: `${name} (${shown}): ${issue.message}` });
    }
  }
  if (!parsed.success || problems.length > 0) {
    const lines = problems.map(({ message }) => message).join('\n  ');
    throw new ConfigError(`configuration refused:\n  ${lines}`, { problems });
  }
  return parsed.data;
}
