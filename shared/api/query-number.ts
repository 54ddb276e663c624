/** Numbers in queries and paths, which arrive as text. */
import { z } from 'zod';

const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** A number in a query or a path, in decimal notation. `number` defines its bounds and default. */
export function queryNumber<Schema extends z.ZodNumber | z.ZodDefault<z.ZodNumber>>(
  number: Schema,
) {
  return z.preprocess(
    (text) => (typeof text === 'string' && DECIMAL.test(text) ? Number(text) : text),
    number,
  );
}
