/** Listen addresses: configuration, URLs, conflicts, and errors that name the variable to change. */

import { createServer } from 'node:net';
import { z } from 'zod';
import type { ConfigProblem } from '../runtime/config.ts';
import type { HttpServer } from './server.ts';

/** Names of the options or variables that set the address. */
export type AddressNames = { host: string; port: string };

type Address = { host: string; port: number };

/** Starts to listen. Rejects with a message that names the variable to change. */
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

/** Describes an error of `listen`. */
export function listenProblem(
  error: unknown,
  { host, port }: Address,
  names: AddressNames,
): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is in use: stop the process that uses it, or choose another with ${names.port}`;
    case 'EACCES':
      return `only root may use port ${port}: choose one above 1023 with ${names.port}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `this machine has no address ${host}: choose one of its addresses with ${names.host}`;
    default:
      return `port ${port} on ${host} is not available (${code}): choose another with ${names.port}`;
  }
}

/**
 * Rejects if an address cannot be listened on, with a line for each that names the variable or option to change. Used
 * before child processes that listen there are started.
 */
export async function requireFreePorts(
  listeners: readonly (Address & { names: AddressNames })[],
): Promise<void> {
  const problems: string[] = [];
  // One at a time: two listeners on the same port would report each other.
  for (const { names, ...address } of listeners) {
    const error = await listenError(address);
    if (error !== null) problems.push(listenProblem(error, address, names));
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
}

/** Listens for a moment. Returns the error, or null if the port is free. */
export function listenError(address: Address): Promise<Error | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ ...address, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

const MAX_PORT = 65_535;
const EVERY_ADDRESS = ['0.0.0.0', '::'];
const ADDRESS = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/;

/** Address and port of an additional listener: `127.0.0.1:9100`, `[::1]:9100`. */
export const ListenAddress = z.string().transform((text, context) => {
  const [, bracketed, plain, port = ''] = ADDRESS.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host !== undefined && Number(port) <= MAX_PORT) return { host, port: Number(port) };
  context.addIssue('Not an address like 127.0.0.1:9100');
  return z.NEVER;
});

export type ListenAddress = z.output<typeof ListenAddress>;

/** Formats host and port for a URL: an IPv6 address is in brackets. */
export function hostAndPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns the host at which local callers reach a listener: the loopback address if it listens on all. */
export function localHost(host: string): string {
  return EVERY_ADDRESS.includes(host) ? '127.0.0.1' : host;
}

/** Like `localHost`, with the port, for a URL. */
export function localHostAndPort(host: string, port: number): string {
  return hostAndPort(localHost(host), port);
}

/**
 * Returns a problem if an additional listener has the same address and port as the main one; for `rules`. Port 0 means
 * any free port. `names` are the variables of the main listener.
 */
export function portConflict(
  name: string,
  beside: ListenAddress | undefined,
  main: { host: string | undefined; port: number | undefined; names: string },
): ConfigProblem[] {
  if (beside === undefined || main.host === undefined) return [];
  if (beside.port !== main.port || beside.port === 0) return [];
  const hosts = [beside.host, main.host];
  const overlap = beside.host === main.host || hosts.some((host) => EVERY_ADDRESS.includes(host));
  const message = `${name}: port ${beside.port} is already used by ${main.names}: choose another`;
  return overlap ? [{ name, message }] : [];
}
