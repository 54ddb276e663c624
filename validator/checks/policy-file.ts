/** Reads a policy (of checks or of weights) from a JSON file of the operator. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import { nearestName } from '#shared/runtime/nearest-name.ts';

/** Throws ConfigError that names the file and every invalid field. `what`: what the policy is for. */
export function readPolicyFile<Schema extends z.ZodObject>(
  schema: Schema,
  path: string,
  { what, maxBytes }: { what: string; maxBytes: number },
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
      : [`${issue.path.join('.') || 'policy'}: ${issue.message}`],
  );
  throw new ConfigError(`${path} is not a policy for ${what}:\n  ${problems.join('\n  ')}`);
}

function unknownField(name: string, fields: readonly string[]): string {
  const nearest = nearestName(name, fields);
  return `${name}: unknown field${nearest === null ? '' : `; did you mean ${nearest}?`}`;
}
