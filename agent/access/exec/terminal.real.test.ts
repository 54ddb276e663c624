import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/api/agent/terminal.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { removeLogPod, startLogPod } from '../../../test/bench/log-pod.ts';
import { type AgentProcess, createAgentHome } from '../../../test/fakes/agents/agent-process.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { freePorts } from '../../../test/fakes/free-ports.ts';
import { upgrade } from '../../../test/fakes/raw-upgrade.ts';
import {
  createTerminalClient,
  type TerminalClient,
} from '../../../test/fakes/scenes/terminal-client.ts';
import { createDockerodeEngine } from '../../containers/engine/dockerode-engine.ts';
import { LABELS } from '../../containers/engine/engine.ts';
import { MAX_TERMINALS_PER_POD } from './terminal.service.ts';

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const UNKNOWN_POD = '3f9f41a6-0002-4000-8000-00000000dead';
let home: ReturnType<typeof createAgentHome>;
let agent: AgentProcess;
let pod: PodView;
/** Log output of the agent so far. */
let logged = '';

beforeAll(async () => {
  const { first } = await freePorts(10);
  const range = `${first}-${first + 9}`;
  home = createAgentHome({ AGENT_PORT_RANGE: range, AGENT_LOG_LEVEL: 'info' }, (text) => {
    logged += text;
  });
  agent = await home.start();
  pod = await startLogPod(agent, 'exec sleep 100000');
});
afterAll(async () => {
  await agent.stop();
  const owner = { [LABELS.executor]: home.executorId };
  for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
  for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
  home.remove();
});

async function open(query = '', podId = pod.id): Promise<TerminalClient> {
  const path = `/v1/pods/${podId}/exec?${query}`;
  return createTerminalClient(
    await agent.connect({ path, maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES }),
  );
}

async function processes(): Promise<string> {
  return mustRun('docker', 'exec', pod.container_id ?? '', 'ps');
}

/** Disconnects the clients and waits until no shell runs. */
async function leave(...clients: TerminalClient[]): Promise<void> {
  for (const { socket } of clients) socket.terminate();
  await eventually('the end of the shells', async () => !(await processes()).includes('sh -l'));
}

describe('a terminal', () => {
  it('has the requested size, then the new one after a resize', async () => {
    const terminal = await open('cols=91&rows=17');
    terminal.type('stty size\n');
    await terminal.shows('17 91');
    terminal.send({ type: 'resize', cols: 133, rows: 41 });
    await eventually('the new size', async () => {
      terminal.type('stty size\n');
      await systemClock.sleep(50);
      return terminal.hasShown('41 133');
    });
    await leave(terminal);
  });

  it('is a login shell of the pod, and sends its exit status last', async () => {
    const terminal = await open('term=screen');
    terminal.type('echo "is $USER $TERM $(tty) $HOSTNAME"; exit 42\n');
    await terminal.shows('is root screen /dev/pts/');
    expect(await terminal.closed).toEqual({ code: 1000, reason: 'exit' });
    expect(terminal.exit()).toBe(42);
  });

  it('sends all output of a program, however much', async () => {
    const terminal = await open();
    terminal.type('stty -onlcr; head -c 20000000 /dev/zero | tr "\\\\0" x; exit\n');
    await terminal.closed;
    expect(terminal.bytes()).toBeGreaterThan(20_000_000);
    expect(terminal.bytes()).toBeLessThan(20_001_000);
  });

  it('logs signer, duration and byte counts, and no content', async () => {
    logged = '';
    const terminal = await open();
    terminal.type('echo secret-$((6 * 7)); exit 3\n');
    await terminal.shows('secret-42');
    await terminal.closed;
    await eventually('the record', () => logged.includes('terminal closed'));
    const records = logged
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const who = {
      pod_id: pod.id,
      signer: (await agent.signedHeaders('/'))['x-podwright-signer'],
      request_id: expect.stringMatching(/./),
    };
    expect(records).toMatchObject([
      { ...who, msg: 'terminal opened' },
      {
        ...who,
        msg: 'terminal closed',
        exit_code: 3,
        seconds: expect.any(Number),
        received: 'echo secret-$((6 * 7)); exit 3\n'.length,
        sent: terminal.bytes(),
      },
    ]);
    expect(logged).not.toContain('secret');
  });

  it('ends when its client disconnects', async () => {
    const terminal = await open();
    terminal.type('sleep 7654\n');
    await eventually('the program', async () => (await processes()).includes('sleep 7654'));
    terminal.socket.terminate();
    await eventually('its end', async () => !(await processes()).includes('sleep 7654'));
  });

  it('is killed if it ignores the disconnect of its client', async () => {
    const terminal = await open();
    terminal.type("trap '' HUP; while :; do sleep 0.765; done\n");
    await eventually('the program', async () => (await processes()).includes('sleep 0.765'));
    terminal.socket.close();
    await eventually('the kill', async () => !(await processes()).includes('sleep 0.765'));
  });
});

describe('a misbehaving client', () => {
  it.each([
    ['text that is not JSON', 'resize'],
    ['an unknown message', '{"type":"signal","name":"KILL"}'],
    ['an invalid size', '{"type":"resize","cols":0,"rows":1}'],
    ['a message with an extra member', '{"type":"resize","cols":1,"rows":1,"x":1}'],
  ])('loses its terminal when it sends %s', async (_, text) => {
    const terminal = await open();
    terminal.socket.send(text);
    expect(await terminal.closed).toEqual({ code: 1008, reason: 'invalid_message' });
    await leave();
  });

  it('loses its terminal when it sends a message above the size limit', async () => {
    const terminal = await open();
    terminal.type('x'.repeat(MAX_TERMINAL_MESSAGE_BYTES + 1));
    expect(await terminal.closed).toMatchObject({ code: 1009 });
    await leave();
  });

  it('does not delay other clients and costs little memory when it stops reading', async () => {
    const stalled = await open();
    stalled.type('yes\n');
    await stalled.shows('y\r\ny\r\n');
    stalled.socket.pause();
    const before = await residentMiB();
    const other = await open();
    other.type('echo $((6 * 7))\n');
    await other.shows('42');
    await systemClock.sleep(2_000);
    expect((await residentMiB()) - before).toBeLessThan(16);
    await leave(stalled, other);
  });
});

describe('a request for a terminal', () => {
  it.each([
    ['an unknown pod', () => `/v1/pods/${UNKNOWN_POD}/exec`, 404, 'pod_not_found'],
    ['an invalid size', () => `/v1/pods/${pod.id}/exec?cols=x`, 422, 'validation_error'],
    ['another path', () => `/v1/pods/${pod.id}`, 400, 'bad_request'],
    ['a path without a route', () => '/v1/nothing', 404, 'not_found'],
  ])('is rejected if it names %s', async (_, path, status, code) => {
    const connecting = agent.connect({ path: path(), maxMessageBytes: 1_000 });
    await expect(connecting).rejects.toMatchObject({ status, code });
  });

  it('is rejected without a signature, or with a reused one', async () => {
    const path = `/v1/pods/${pod.id}/exec`;
    const origin = agent.origin;
    expect(await upgrade(origin + path)).toMatchObject({ status: 401, code: 'auth_failed' });
    const headers = await agent.signedHeaders(path);
    expect(await upgrade(origin + path, headers)).toMatchObject({ status: 101 });
    expect(await upgrade(origin + path, headers)).toMatchObject({
      status: 401,
      code: 'auth_failed',
    });
    const other = `${path}?cols=100`;
    expect(await upgrade(origin + other, await agent.signedHeaders(path))).toMatchObject({
      status: 401,
    });
    await leave();
  });

  it('is rejected if it is not a WebSocket upgrade', async () => {
    const response = await agent.send({ method: 'GET', path: `/v1/pods/${pod.id}/exec` });
    expect(response.status).toBe(426);
    expect(response.headers.get('upgrade')).toBe('websocket');
  });

  it('is rejected above the limit of terminals per pod', async () => {
    const full = await startLogPod(agent, 'exec sleep 1000');
    const opening = Array.from({ length: MAX_TERMINALS_PER_POD }, () => open('', full.id));
    const [first] = await Promise.all(opening);
    const oneMore = open('', full.id);
    await expect(oneMore).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
    first?.type('exit\n');
    await eventually('a free slot', () => open('', full.id).catch(() => null));
    await removeLogPod(agent, full.id);
  });

  it('is rejected for a removed pod, whose terminals are closed', async () => {
    const short = await startLogPod(agent, 'exec sleep 1000');
    const terminal = await open('', short.id);
    terminal.type('echo ready\n');
    await terminal.shows('ready');
    await removeLogPod(agent, short.id);
    expect((await terminal.closed).code).toBe(1000);
    await expect(open('', short.id)).rejects.toMatchObject({ code: 'pod_not_found' });
  });
});

it('the restarted agent ends the terminals that the killed agent left, but not their detached processes', async () => {
  const terminal = await open();
  terminal.type('setsid sleep 7655 & sleep 7656\n');
  await eventually('the programs', async () => {
    const seen = await processes();
    return seen.includes('sleep 7655') && seen.includes('sleep 7656');
  });
  await agent.kill();
  expect(await processes()).toContain('sleep 7656');
  agent = await home.start();
  await eventually('the end', async () => !(await processes()).includes('sleep 7656'));
  expect(await processes()).toContain('sleep 7655');
});

async function residentMiB(): Promise<number> {
  const status = await mustRun('cat', `/proc/${agent.child.pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}
