/** The body of an answer from outside, no longer than it may be. */

/** Rejects with RangeError beyond `maxBytes`; the rest is not read. */
export async function boundedText(answer: Response, maxBytes: number): Promise<string> {
  if (answer.body === null) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new RangeError(`an answer of more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
