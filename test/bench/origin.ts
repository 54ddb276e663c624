/** Addresses of servers that a benchmark has started. */
import type { AddressInfo } from 'node:net';

/** URL at which a server listens on this host. */
export function originOf({
  server,
}: {
  server: { address(): AddressInfo | string | null };
}): string {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return `http://127.0.0.1:${address.port}`;
}
