/** Reads a policy (of checks or of weights) from a JSON file of the operator. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';

/**
 * Throws ConfigError that names the file and every missing or invalid field. `what`: what the policy is for; `example`: a
 * file with all fields, relative to the root of the project.
 */
export function readPolicyFile<Schema extends z.ZodObject>(
  schema: Schema,
  path: string,
  { what, maxBytes, example }: { what: string; maxBytes: number; example: string },
): z.output<Schema> {
  let content: unknown;
  try {
    const text = readFileSync(path, 'utf8');
    if (text.length > maxBytes) throw new Error(`longer than ${maxBytes} bytes`);
    content = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(fileProblem(path, error), { cause: error });
  }
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  const fields = Object.keys(schema.shape);
  const problems = parsed.error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' && issue.path.length === 0
      ? issue.keys.map((name) => unknownField(name, fields))
      : [`${issue.path.join('.') || 'policy'}: ${reasonOf(issue, content)}`],
  );
  throw new ConfigError(
    `${path} is not a policy for ${what}:\n  ${problems.join('\n  ')}\n  ${example} has an example of every field`,
  );
}

const MISSING = 'the field is missing';

/** The messages of our rules (`custom`) contain more than that a field is missing. */
function reasonOf(issue: z.core.$ZodIssue, content: unknown): string {
  return issue.code !== 'custom' && isAbsent(content, issue.path) ? MISSING : issue.message;
}

/** Returns true if the content has no value at this path. */
function isAbsent(content: unknown, path: readonly PropertyKey[]): boolean {
  const value = path.reduce<unknown>(
    (within, name) =>
      within === null ? undefined : (within as Record<PropertyKey, unknown>)?.[name],
    content,
  );
  return path.length > 0 && value === undefined;
}

function unknownField(name: string, fields: readonly string[]): string {
  const nearest = nearestName(name, fields);
  return `${name}: unknown field${nearest === null ? '' : `; did you mean ${nearest}?`}`;
}
