/** Listening, and in words why not. */
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
