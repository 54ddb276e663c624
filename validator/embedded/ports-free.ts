/** Says early, and in words, that a port cannot be had: before anything was started. */
import { createServer } from 'node:net';
import { listenProblem } from '#shared/http/listen.ts';

/** Rejects naming the option that chooses another port, or address. */
export async function requireFreePort(host: string, port: number, option: string): Promise<void> {
  const problem = await new Promise<string | null>((resolve) => {
    const server = createServer();
    server.once('error', (error) =>
      resolve(listenProblem(error, { host, port }, { host: '--host', port: option })),
    );
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
  if (problem !== null) throw new Error(problem);
}
