/**
 * Types of the public interface as strict clients declare them. Written from the interface's field lists, independent
 * of the schemas that the server uses. Unknown members are ignored, as clients do.
 */
import { z } from 'zod';

export const s = z.string();
export const i = z.int();
export const n = z.number();
export const b = z.boolean();
export const u = z.uuid();
/** UTC without offset, six fractional digits. */
export const t = s.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/, 'not a time of the interface');
export const strings = z.array(s);

/** A field that may be null or absent. All others are always present and never null. */
export function maybe<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish();
}

export const Share = n.min(0).max(1);
export const Percent = n.min(0).max(100);

export const Success = z.object({ success: z.literal(true) });
export const Message = Success.extend({ message: s });

/** A page of a list in the renter's interface. */
export function paged<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), total: i, page: i, limit: i, has_next: b });
}

/**
 * Any JSON object, for routes in addition to the interface. The comparison with the OpenAPI document still checks for
 * nulls.
 */
export const AnyObject = z.looseObject({});
