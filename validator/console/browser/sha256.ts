/** SHA-256 of the browser. */

/** Returns the hash as lower-case hex; null on pages that are served neither over TLS nor from this computer. */
export async function sha256Hex(text: string): Promise<string | null> {
  // Undefined outside secure contexts.
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  if (subtle === undefined) return null;
  const hash = await subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
