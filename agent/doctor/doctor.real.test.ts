/** The doctor as a provider runs it: a process on this host, with the real engine. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createAgentDoctor, TRUSTED_KEY } from '../../test/fakes/agents/agent-doctor.ts';
import { mustRun } from '../../test/fakes/agents/real-host.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';

const doctor = createAgentDoctor();
afterAll(() => doctor.close());

/** Returns the ids of the executor's containers that are left in the engine, one per line. */
const containersOf = (executorId: string) =>
  mustRun('docker', 'ps', '-aq', '--filter', `label=io.podwright.executor=${executorId}`);

it('reports no fault of this host, and removes the container that it started', async () => {
  const range = await freePorts(20);
  const executorId = systemRandom.uuid();
  const find = await doctor.findings({
    AGENT_EXECUTOR_ID: executorId,
    AGENT_TRUSTED_KEYS: TRUSTED_KEY,
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

it('detects with a probe container that GPUs are not passed to containers', async () => {
  const uuid = 'GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a';
  doctor.smi.become(`echo '${uuid}, NVIDIA H100, 560.35.03, 00000000:3B:00.0, Enabled'`);
  const executorId = systemRandom.uuid();
  const find = await doctor.findings({
    PATH: `${doctor.smi.env.PATH}:/usr/sbin:/sbin`,
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

it('reports an invalid policy, taken ports and a wrong clock', async () => {
  const policy = join(doctor.folder, 'policy.json');
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
  const find = await doctor.findings(
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
