/** Reads a policy (of checks or of weights) from a JSON file of the operator. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem } from '#shared/runtime/files.ts';

/** Throws ConfigError that names the file and every invalid field. `what`: what the policy is for. */
export function readPolicyFile<T>(
  schema: z.ZodType<T>,
  path: string,
  { what, maxBytes }: { what: string; maxBytes: number },
): T {
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
  const problems = parsed.error.issues.map(
    ({ path: at, message }) => `${at.join('.') || 'policy'}: ${message}`,
  );
  throw new ConfigError(`${path} is not a policy for ${what}:\n  ${problems.join('\n  ')}`);
}
