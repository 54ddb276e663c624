/** The doctor as a provider runs it: a process on this host, with the real engine. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { z } from 'zod';
import { Finding } from '#shared/check/doctor.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createAgentHome } from '../../test/fakes/agents/agent-process.ts';
import { createFakeNvidiaSmi } from '../../test/fakes/agents/fake-nvidia-smi.ts';
import { mustRun } from '../../test/fakes/agents/real-host.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';

const KEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY=validator-control';
const Report = z.array(Finding);
const folder = mkdtempSync(join(tmpdir(), 'podwright-doctor-'));
const smi = createFakeNvidiaSmi();
afterAll(() => {
  rmSync(folder, { recursive: true });
  smi.remove();
});

type Run = { status: number | null; out: string; error: string };

function doctor(environment: Record<string, string>, ...args: string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const env = {
      PATH: process.env['PATH'] ?? '',
      AGENT_HOME: join(folder, 'home'),
      ...environment,
    };
    const child = spawn(process.execPath, agentArguments('doctor', ...args), { env });
    let [out, error] = ['', ''];
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      error += chunk;
    });
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, out, error }));
  });
}

async function findings(environment: Record<string, string>, ...args: string[]) {
  const { out, status } = await doctor(environment, '--json', ...args);
  const list = Report.parse(JSON.parse(out));
  const ids = list.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const isFailed = list.some((each) => each.status === 'fail');
  expect(status).toBe(isFailed ? 1 : list.some(({ timed_out }) => timed_out) ? 3 : 0);
  const needy = list.filter((each) => ['warn', 'fail'].includes(each.status));
  expect(needy.filter(({ remedy }) => remedy === null)).toEqual([]);
  return (id: string) => {
    const found = list.find((each) => each.id === id);
    if (found === undefined) throw new Error(`no finding ${id} in ${out}`);
    return found;
  };
}

/** Returns the ids of the executor's containers that are left in the engine, one per line. */
const containersOf = (executorId: string) =>
  mustRun('docker', 'ps', '-aq', '--filter', `label=io.podwright.executor=${executorId}`);

/** Returns variables of an agent with these ports. The agent itself uses the last one. */
const agentAt = (range: { first: number; last: number }) => ({
  AGENT_PORT: String(range.last),
  AGENT_PORT_RANGE: `${range.first}-${range.last - 1}`,
});

it('reports no fault of this host, and removes the container that it started', async () => {
  const range = await freePorts(20);
  const executorId = systemRandom.uuid();
  const find = await findings({
    AGENT_EXECUTOR_ID: executorId,
    AGENT_TRUSTED_KEYS: KEY,
    AGENT_GPU: 'none',
    AGENT_PORT: '0',
    AGENT_PORT_RANGE: `${range.first}-${range.last}`,
  });
  for (const id of [
    'configuration',
    'docker',
    'docker-limits',
    'container',
    'pod-figures',
    'ip-forwarding',
    'pod-ports-free',
    'busybox',
  ]) {
    expect(find(id)).toMatchObject({ id, status: 'ok' });
  }
  const version = (await mustRun('docker', 'version', '-f', '{{.Server.Version}}')).trim();
  expect(find('docker').finding).toContain(version);
  expect(['ok', 'warn']).toContain(find('docker-storage').status);
  expect(await containersOf(executorId)).toBe('');
});

it('checks the host without a valid configuration, an engine or a responsive nvidia-smi', async () => {
  smi.become('sleep 60');
  const began = performance.now();
  const find = await findings({
    PATH: `${smi.env.PATH}:/usr/sbin:/sbin`,
    AGENT_DOCKER_SOCKET: join(folder, 'no.sock'),
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

it('detects with a probe container that GPUs are not passed to containers', async () => {
  const uuid = 'GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a';
  smi.become(`echo '${uuid}, NVIDIA H100, 560.35.03, 00000000:3B:00.0, Enabled'`);
  const executorId = systemRandom.uuid();
  const find = await findings({
    PATH: `${smi.env.PATH}:/usr/sbin:/sbin`,
    AGENT_EXECUTOR_ID: executorId,
  });
  expect(find('nvidia-driver')).toMatchObject({
    status: 'ok',
    finding: expect.stringContaining('H100'),
  });
  expect(find('gpu-sources')).toMatchObject({
    status: 'fail',
    finding: expect.stringContaining('the bus lacks 0000:3b:00.0'),
  });
  expect(find('container')).toMatchObject({
    status: 'fail',
    finding: expect.stringContaining('GPU_RUNTIME_DEVICE_FAULT at step start'),
    remedy: expect.stringContaining('nvidia-container-toolkit'),
  });
  expect(await containersOf(executorId)).toBe('');
});

it('does not wait for an engine that accepts connections and never answers', async () => {
  const socket = join(folder, 'hung.sock');
  const server = createNetServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const find = await findings({ AGENT_DOCKER_SOCKET: socket, AGENT_GPU: 'none' });
  expect(find('docker')).toMatchObject({
    status: 'unknown',
    timed_out: true,
    remedy: expect.stringContaining('run the doctor again'),
  });
  server.close();
});

it('reports an invalid policy, taken ports and a wrong clock', async () => {
  const policy = join(folder, 'policy.json');
  writeFileSync(policy, '{"max_pod":1}');
  const central = createServer((_request, response) => {
    response.setHeader('date', 'Mon, 01 Jan 2001 00:00:00 GMT').end();
  });
  const taken = createNetServer();
  const range = await freePorts(2);
  await new Promise<void>((resolve) => taken.listen(range.first, resolve));
  await new Promise<void>((resolve) => central.listen(0, '127.0.0.1', resolve));
  const address = central.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const find = await findings(
    {
      AGENT_GPU: 'none',
      AGENT_POLICY: policy,
      AGENT_PORT: String(port),
      AGENT_PORT_RANGE: `${range.first}-${range.last}`,
    },
    '--no-container',
    '--time-from',
    `http://127.0.0.1:${port}/`,
  );
  expect(find('policy')).toMatchObject({
    status: 'fail',
    finding: expect.stringContaining('max_pod'),
  });
  expect(find('clock-skew').status).toBe('fail');
  expect(find('agent-port')).toMatchObject({
    status: 'fail',
    finding: expect.stringContaining('the port answers plain HTTP; the doctor sent TLS'),
  });
  expect(find('pod-ports-free')).toMatchObject({
    status: 'warn',
    finding: expect.stringContaining(String(range.first)),
  });
  expect(find('container').finding).toContain('--no-container');
  expect(find('pod-figures')).toMatchObject({ status: 'unknown' });
  taken.close();
  central.close();
});

it('detects a running agent and does not disturb it', async () => {
  const range = await freePorts(21);
  const home = createAgentHome({ ...agentAt(range), AGENT_TLS: 'on' });
  const agent = await home.start();
  const find = await findings(
    {
      AGENT_EXECUTOR_ID: home.executorId,
      AGENT_TRUSTED_KEYS: KEY,
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
  const { out, status } = await doctor({ AGENT_GPU: 'none' }, '--no-container');
  expect(status).toBe(1);
  expect(out).toMatch(/^fail +executor-id +AGENT_EXECUTOR_ID is not set/m);
  expect(out).toMatch(/^ +→ add the node in the portal/m);
  expect(out).toMatch(/\d+ ok, \d+ warn, \d+ fail, \d+ unknown\n$/);
  expect(out).not.toContain('\u001b');
  expect(await doctor({}, '--frm')).toMatchObject({
    status: 2,
    out: '',
    error: expect.stringContaining('--frm'),
  });
  expect(await doctor({}, '--time-from', 'ftp://x')).toMatchObject({ status: 2 });
  expect(await doctor({}, '--help')).toMatchObject({
    status: 0,
    out: expect.stringContaining('--json'),
  });
});
