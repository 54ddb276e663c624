import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { requireFreePort } from './ports-free.ts';

it('says what is wrong with a port or an address, and which option chooses another', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  await expect(requireFreePort('127.0.0.1', port, '--agent-port')).rejects.toThrow(
    `port ${port} on 127.0.0.1 is in use: stop what uses it, or choose another with --agent-port`,
  );
  await new Promise((resolve) => server.close(resolve));
  await requireFreePort('127.0.0.1', port, '--agent-port');
  // Of a block for documentation: no machine has it.
  await expect(requireFreePort('192.0.2.1', port, '--port')).rejects.toThrow(
    'this machine has no address 192.0.2.1: choose one that it has with --host',
  );
});
