/** The part of a file that a `Range` header asks for (RFC 9110 14.2): one range of bytes. Pure. */

/** First and last byte, both included. */
export type ByteRange = { start: number; end: number };

/** Null: the whole file, which is also the answer to what we do not understand. `unsatisfiable`: beyond its end. */
export function byteRangeOf(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(header ?? '');
  if (match === null) return null;
  const start = Number(match[1]);
  const end = match[2] === '' ? sizeBytes - 1 : Math.min(Number(match[2]), sizeBytes - 1);
  if (match[2] !== '' && Number(match[2]) < start) return null;
  return start >= sizeBytes ? 'unsatisfiable' : { start, end };
}
