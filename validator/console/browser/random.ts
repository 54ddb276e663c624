/** Returns a random key, for the Idempotency-Key header. `crypto.randomUUID` exists only on pages served over TLS. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
