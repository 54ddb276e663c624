/** Where a listener beside the main one listens, as configuration names it. */
import { z } from 'zod';
import type { ConfigProblem } from '../runtime/config.ts';

const MAX_PORT = 65_535;
const EVERY_ADDRESS = ['0.0.0.0', '::'];
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

/** Host and port as a URL names them: an IPv6 address in brackets. */
export function placeOf(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Where callers on this machine reach a listener: one of every address at the loopback's. */
export function localHostOf(host: string): string {
  return EVERY_ADDRESS.includes(host) ? '127.0.0.1' : host;
}

/** The same, with its port, as a URL names it. */
export function localPlaceOf(host: string, port: number): string {
  return placeOf(localHostOf(host), port);
}

/**
 * The problem of a listener beside the main one that wants the same port of the same address, or none; for `rules`. Port 0 is
 * any free one. `names` are the variables of the main listener.
 */
export function portClash(
  name: string,
  beside: PlainAddress | undefined,
  main: { host: string | undefined; port: number | undefined; names: string },
): ConfigProblem[] {
  if (beside === undefined || main.host === undefined) return [];
  if (beside.port !== main.port || beside.port === 0) return [];
  const hosts = [beside.host, main.host];
  const meet = beside.host === main.host || hosts.some((host) => EVERY_ADDRESS.includes(host));
  const message = `${name}: has port ${beside.port}, as ${main.names} have: choose another`;
  return meet ? [{ name, message }] : [];
}
