/** How others on this machine reach us, where no public origin is configured. */

import { localHostAndPort } from '#shared/http/listen.ts';
import type { HttpServer } from '#shared/http/server.ts';

/** `http://host:port` of the first listener. Throws before there is one. */
export function listeningOrigin(server: HttpServer): string {
  const [listener] = server.addresses();
  if (typeof listener !== 'object') throw new Error('the central API does not listen yet');
  return `http://${localHostAndPort(listener.address, listener.port)}`;
}
