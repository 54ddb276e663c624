/** Says early, and in words, that a port is taken: before anything was started. */
import { createServer } from 'node:net';
import { ConfigError } from '#shared/config.ts';

/** Throws ConfigError naming the option that chooses another port. */
export async function requireFreePort(host: string, port: number, option: string): Promise<void> {
  const taken = await new Promise<boolean>((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(true));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(false)));
  });
  if (taken) {
    throw new ConfigError(
      `port ${port} on ${host} is in use: stop what uses it, or choose another with ${option}`,
    );
  }
}
