/** The doctor as a provider runs it: a process on this host, with the real engine. */
import { createServer as createNetServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createAgentDoctor, TRUSTED_KEY } from '../../test/fakes/agents/agent-doctor.ts';
import { createAgentHome } from '../../test/fakes/agents/agent-process.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';

const doctor = createAgentDoctor();
afterAll(() => doctor.close());

/** Returns variables of an agent with these ports. The agent itself uses the last one. */
const agentAt = (range: { first: number; last: number }) => ({
  AGENT_PORT: String(range.last),
  AGENT_PORT_RANGE: `${range.first}-${range.last - 1}`,
});

it('checks the host without a valid configuration, an engine or a responsive nvidia-smi', async () => {
  doctor.smi.become('sleep 60');
  const began = performance.now();
  const find = await doctor.findings({
    PATH: `${doctor.smi.env.PATH}:/usr/sbin:/sbin`,
    AGENT_DOCKER_SOCKET: join(doctor.folder, 'no.sock'),
    AGENT_PORT_RANGE: '30000-40000',
    AGENT_POD_SUBNETS: '127.0.0.1/8',
    AGENT_NO_SUCH: '1',
  });
  expect(performance.now() - began).toBeLessThan(25_000);
  const problems = find('configuration');
  expect(problems.status).toBe('fail');
  for (const name of ['AGENT_EXECUTOR_ID', 'AGENT_POD_SUBNETS', 'AGENT_NO_SUCH']) {
    expect(problems.finding).toContain(name);
  }
  expect(find('docker')).toMatchObject({
    status: 'fail',
    finding: expect.stringContaining('ENOENT'),
  });
  expect(find('container').status).toBe('unknown');
  expect(find('nvidia-driver')).toMatchObject({
    status: 'unknown',
    timed_out: true,
    finding: expect.stringContaining('did not end within'),
  });
  expect(find('pod-ports-ephemeral')).toMatchObject({
    status: 'warn',
    finding: expect.stringContaining('30000-40000'),
  });
  expect(find('kernel').status).toBe('ok');
});

it('does not wait for an engine that accepts connections and never answers', async () => {
  const socket = join(doctor.folder, 'hung.sock');
  const server = createNetServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const find = await doctor.findings({ AGENT_DOCKER_SOCKET: socket, AGENT_GPU: 'none' });
  expect(find('docker')).toMatchObject({
    status: 'unknown',
    timed_out: true,
    remedy: expect.stringContaining('run the doctor again'),
  });
  server.close();
});

it('detects a running agent and does not disturb it', async () => {
  const range = await freePorts(21);
  const home = createAgentHome({ ...agentAt(range), AGENT_TLS: 'on' });
  const agent = await home.start();
  const find = await doctor.findings(
    {
      AGENT_EXECUTOR_ID: home.executorId,
      AGENT_TRUSTED_KEYS: TRUSTED_KEY,
      AGENT_GPU: 'none',
      AGENT_HOST: '0.0.0.0',
      AGENT_HOME: agent.home,
      ...agentAt(range),
    },
    '--address',
    '127.0.0.1',
  );
  expect(find('agent')).toMatchObject({
    status: 'ok',
    finding: `runs as process ${agent.child.pid}`,
  });
  expect(find('agent-port').status).toBe('ok');
  expect(find('reachability').finding).toContain('cannot find out');
  expect(find('ssh-gateway').status).toBe('fail');
  expect(find('container').status).toBe('ok');
  expect(await agent.client.listPods()).toEqual([]);
  expect((await agent.client.inventory()).orphans).toEqual([]);
  await agent.stop();
  home.remove();
});

it('prints lines without colours to a pipe, and rejects unknown options', async () => {
  const { out, status } = await doctor.run({ AGENT_GPU: 'none' }, '--no-container');
  expect(status).toBe(1);
  expect(out).toMatch(/^fail +executor-id +AGENT_EXECUTOR_ID is not set/m);
  expect(out).toMatch(/^ +→ add the node in the portal/m);
  expect(out).toMatch(/\d+ ok, \d+ warn, \d+ fail, \d+ unknown\n$/);
  expect(out).not.toContain('\u001b');
  expect(await doctor.run({}, '--frm')).toMatchObject({
    status: 2,
    out: '',
    error: expect.stringContaining('--frm'),
  });
  expect(await doctor.run({}, '--time-from', 'ftp://x')).toMatchObject({ status: 2 });
  expect(await doctor.run({}, '--help')).toMatchObject({
    status: 0,
    out: expect.stringContaining('--json'),
  });
});
