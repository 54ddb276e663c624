/** Descriptions of the members of a zod object, which the interface's documentation shows. */
import type { z } from 'zod';

type Shape = Readonly<Record<string, z.ZodType>>;

/** One text for each member: meaning, unit and the meaning of null. */
export type Texts<Members extends Shape> = { readonly [Name in keyof Members]: string };

/**
 * Returns the members with their descriptions; pass the result to `z.object` or spread it into another shape. A member
 * without a text does not compile.
 */
export function described<Members extends Shape>(members: Members, texts: Texts<Members>): Members {
  const entries = Object.entries(members).map(([name, schema]) => [
    name,
    schema.describe(texts[name] ?? ''),
  ]);
  return Object.fromEntries(entries);
}
