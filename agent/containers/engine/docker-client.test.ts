import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { createDockerClient } from './docker-client.ts';

const REQUESTS = 50;
/** dockerode's HTTP client. */
const Modem = z.object({ agent: z.instanceof(Agent) });

it('does not format its connections when dockerode formats the options of a request', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-client-'));
  const socketPath = join(folder, 'docker.sock');
  const server = createServer((_, response) => response.end('OK'));
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  try {
    const docker = createDockerClient(socketPath);
    const { agent } = Modem.parse(docker.modem);
    await Promise.all(Array.from({ length: REQUESTS }, () => docker.ping()));
    expect(Object.values(agent.freeSockets).flat()).toHaveLength(REQUESTS);
    const text = inspect({ agent }, { showHidden: true, depth: null });
    expect(text).toBe('{ agent: EngineConnections }');
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  }
});
