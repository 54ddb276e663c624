/** Says early, and in words, that a port cannot be had: before anything was started. */
import { createServer } from 'node:net';
import { ConfigError } from '#shared/config.ts';

/** Throws ConfigError naming the option that chooses another port, or address. */
export async function requireFreePort(host: string, port: number, option: string): Promise<void> {
  const problem = await new Promise<string | null>((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) =>
      resolve(inWords(error.code, host, port, option)),
    );
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
  if (problem !== null) throw new ConfigError(problem);
}

function inWords(code: string | undefined, host: string, port: number, option: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is in use: stop what uses it, or choose another with ${option}`;
    case 'EACCES':
      return `port ${port} is for root alone: choose one above 1023 with ${option}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `this machine has no address ${host}: choose one that it has with --host`;
    default:
      return `port ${port} on ${host} cannot be had (${code ?? 'unknown'}): choose another with ${option}`;
  }
}
