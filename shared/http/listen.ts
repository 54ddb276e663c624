/** Listening, and in words why not. */

import { z } from 'zod';
import type { ConfigProblem } from '../runtime/config.ts';
import type { HttpServer } from './server.ts';

/** What chooses another: options or variables. */
export type AddressNames = { host: string; port: string };

type Address = { host: string; port: number };

/** Rejects naming the variables to change where the address cannot be had. */
export async function listenOn(
  server: HttpServer,
  address: Address,
  names: AddressNames,
): Promise<void> {
  try {
    await server.listen(address);
  } catch (error) {
    throw new Error(listenProblem(error, address, names), { cause: error });
  }
}

/** Of the error that `listen` gave. */
export function listenProblem(
  error: unknown,
  { host, port }: Address,
  names: AddressNames,
): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is in use: stop what uses it, or choose another with ${names.port}`;
    case 'EACCES':
      return `port ${port} is for root alone: choose one above 1023 with ${names.port}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `this machine has no address ${host}: choose one that it has with ${names.host}`;
    default:
      return `port ${port} on ${host} cannot be had (${code}): choose another with ${names.port}`;
  }
}

// MERGED shared/http/listen.ts: Where a listener beside the main one listens, as configuration names it.
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

export type ListenAddress = z.output<typeof ListenAddress>;

/** Host and port as a URL names them: an IPv6 address in brackets. */
export function hostAndPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Where callers on this machine reach a listener: one of every address at the loopback's. */
export function localHost(host: string): string {
  return EVERY_ADDRESS.includes(host) ? '127.0.0.1' : host;
}

/** The same, with its port, as a URL names it. */
export function localHostAndPort(host: string, port: number): string {
  return hostAndPort(localHost(host), port);
}

/**
 * The problem of a listener beside the main one that wants the same port of the same address, or none; for `rules`. Port 0 is
 * any free one. `names` are the variables of the main listener.
 */
export function portConflict(
  name: string,
  beside: ListenAddress | undefined,
  main: { host: string | undefined; port: number | undefined; names: string },
): ConfigProblem[] {
  if (beside === undefined || main.host === undefined) return [];
  if (beside.port !== main.port || beside.port === 0) return [];
  const hosts = [beside.host, main.host];
  const meet = beside.host === main.host || hosts.some((host) => EVERY_ADDRESS.includes(host));
  const message = `${name}: has port ${beside.port}, as ${main.names} have: choose another`;
  return meet ? [{ name, message }] : [];
}
