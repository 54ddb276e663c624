/** Where a listener beside the main one listens, as configuration names it. */
import { z } from 'zod';

const MAX_PORT = 65_535;
const ADDRESS = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/;

/** `127.0.0.1:9100`, `[::1]:9100` */
export const ListenAddress = z.string().transform((text, context) => {
  const [, bracketed, plain, port = ''] = ADDRESS.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host !== undefined && Number(port) <= MAX_PORT) return { host, port: Number(port) };
  context.addIssue('Not an address like 127.0.0.1:9100');
  return z.NEVER;
});

export type PlainAddress = z.output<typeof ListenAddress>;

/** Host and port as a URL names them for callers on this machine: listeners of every address by the loopback's. */
export function localPlaceOf(host: string, port: number): string {
  const named = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return named.includes(':') ? `[${named}]:${port}` : `${named}:${port}`;
}
