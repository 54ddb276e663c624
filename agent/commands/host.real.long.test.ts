/** `npm run host` as a real process, with the real agent and gateway, killed or with faults. */
import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createHostHome,
  endOf,
  HOST_WITHIN_MS,
  type HostHome,
  isRunning,
} from '../../test/fakes/agents/host-process.ts';
import { eventually } from '../../test/fakes/eventually.ts';

let home: HostHome;
beforeEach(() => {
  home = createHostHome();
});
afterEach(() => home.close());

it(
  'ends both when it is killed',
  async () => {
    const host = await home.start();
    const pids = [await host.pidOf('agent'), await host.pidOf('ssh')];
    host.child.kill('SIGKILL');
    await eventually('the end of both', () => pids.filter(isRunning).length === 0, HOST_WITHIN_MS);
  },
  HOST_WITHIN_MS,
);

it('reports a port in use before it starts anything', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? String(address?.port) : '';
  const host = await home.start({ AGENT_METRICS_LISTEN: `127.0.0.1:${port}` });
  expect(await endOf(host.child)).toBe(1);
  expect(host.lines()).toEqual([
    `podwright-agent: port ${port} on 127.0.0.1 is in use: stop the process that uses it, or choose another with AGENT_METRICS_LISTEN`,
  ]);
  server.close();
});

it('reports the invalid variables of both processes at once', async () => {
  const host = await home.start({ AGENT_PORT: 'x', SSH_LOG_LEVEL: 'loud' });
  expect(await endOf(host.child)).toBe(6);
  expect(host.lines().join('\n')).toMatch(/AGENT_PORT \("x"\).*SSH_LOG_LEVEL \("loud"\)/s);
});

it(
  'ends both if one does not start, with the name of that one',
  async () => {
    const host = await home.start({ AGENT_HOME: '/proc/none' });
    expect(await endOf(host.child)).toBe(6);
    expect(host.lines().join('\n')).toMatch(
      /(?:agent|ssh) rejects its configuration: exit code 6: .*\(its messages begin with "(?:agent|ssh) \|"\)/s,
    );
  },
  HOST_WITHIN_MS,
);
