/** How others on this machine reach us, where no public origin is configured. */
import { isIPv6 } from 'node:net';
import type { HttpServer } from '#shared/http/server.ts';

/** Wildcard addresses are answered at loopback too. */
const LOOPBACK: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '127.0.0.1' };

/** `http://host:port` of the first listener. Throws before there is one. */
export function listeningOrigin(server: HttpServer): string {
  const [listener] = server.addresses();
  if (typeof listener !== 'object') throw new Error('the central API does not listen yet');
  const host = LOOPBACK[listener.address] ?? listener.address;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${listener.port}`;
}
