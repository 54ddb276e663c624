import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/api/agent/terminal.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { startLogPod } from '../../../test/bench/log-pod.ts';
import { removePods } from '../../../test/fakes/agents/launch-pod.ts';
import { startTerminalHost, type TerminalHost } from '../../../test/fakes/agents/terminal-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { upgrade } from '../../../test/fakes/raw-upgrade.ts';

const UNKNOWN_POD = '3f9f41a6-0002-4000-8000-00000000dead';
let host: TerminalHost;
/** Log output of the agent so far. */
let logged = '';
beforeAll(async () => {
  host = await startTerminalHost((text) => {
    logged += text;
  });
});
afterAll(() => host.close());

describe('a terminal', () => {
  it('has the requested size, then the new one after a resize', async () => {
    const terminal = await host.open('cols=91&rows=17');
    terminal.type('stty size\n');
    await terminal.shows('17 91');
    terminal.send({ type: 'resize', cols: 133, rows: 41 });
    await eventually('the new size', async () => {
      terminal.type('stty size\n');
      await systemClock.sleep(50);
      return terminal.hasShown('41 133');
    });
    await host.leave(terminal);
  });

  it('is a login shell of the pod, and sends its exit status last', async () => {
    const terminal = await host.open('term=screen');
    terminal.type('echo "is $USER $TERM $(tty) $HOSTNAME"; exit 42\n');
    await terminal.shows('is root screen /dev/pts/');
    expect(await terminal.closed).toEqual({ code: 1000, reason: 'exit' });
    expect(terminal.exit()).toBe(42);
  });

  it('logs signer, duration and byte counts, and no content', async () => {
    const count = (event: string) => logged.split(`"terminal ${event}"`).length;
    await eventually('the earlier records', () => count('opened') === count('closed'));
    logged = '';
    const terminal = await host.open();
    terminal.type('echo secret-$((6 * 7)); exit 3\n');
    await terminal.shows('secret-42');
    await terminal.closed;
    await eventually('the record', () => logged.includes('terminal closed'));
    const records = logged
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const who = {
      pod_id: host.pod.id,
      signer: (await host.agent().signedHeaders('/'))['x-podwright-signer'],
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
    const terminal = await host.open();
    terminal.type('sleep 7654\n');
    await eventually('the program', async () => (await host.processes()).includes('sleep 7654'));
    terminal.socket.terminate();
    await eventually('its end', async () => !(await host.processes()).includes('sleep 7654'));
  });
});

describe('a misbehaving client', () => {
  it.each([
    ['text that is not JSON', 'resize'],
    ['an unknown message', '{"type":"signal","name":"KILL"}'],
    ['an invalid size', '{"type":"resize","cols":0,"rows":1}'],
    ['a message with an extra member', '{"type":"resize","cols":1,"rows":1,"x":1}'],
  ])('loses its terminal when it sends %s', async (_, text) => {
    const terminal = await host.open();
    terminal.socket.send(text);
    expect(await terminal.closed).toEqual({ code: 1008, reason: 'invalid_message' });
    await host.leave();
  });

  it('loses its terminal when it sends a message above the size limit', async () => {
    const terminal = await host.open();
    terminal.type('x'.repeat(MAX_TERMINAL_MESSAGE_BYTES + 1));
    expect(await terminal.closed).toMatchObject({ code: 1009 });
    await host.leave();
  });
});

describe('a request for a terminal', () => {
  it.each([
    ['an unknown pod', () => `/v1/pods/${UNKNOWN_POD}/exec`, 404, 'pod_not_found'],
    ['an invalid size', () => `/v1/pods/${host.pod.id}/exec?cols=x`, 422, 'validation_error'],
    ['another path', () => `/v1/pods/${host.pod.id}`, 400, 'bad_request'],
    ['a path without a route', () => '/v1/nothing', 404, 'not_found'],
  ])('is rejected if it names %s', async (_, path, status, code) => {
    const connecting = host.agent().connect({ path: path(), maxMessageBytes: 1_000 });
    await expect(connecting).rejects.toMatchObject({ status, code });
  });

  it('is rejected without a signature, or with a reused one', async () => {
    const path = `/v1/pods/${host.pod.id}/exec`;
    const origin = host.agent().origin;
    expect(await upgrade(origin + path)).toMatchObject({ status: 401, code: 'auth_failed' });
    const headers = await host.agent().signedHeaders(path);
    expect(await upgrade(origin + path, headers)).toMatchObject({ status: 101 });
    expect(await upgrade(origin + path, headers)).toMatchObject({
      status: 401,
      code: 'auth_failed',
    });
    const other = `${path}?cols=100`;
    expect(await upgrade(origin + other, await host.agent().signedHeaders(path))).toMatchObject({
      status: 401,
    });
    await host.leave();
  });

  it('is rejected if it is not a WebSocket upgrade', async () => {
    const response = await host
      .agent()
      .send({ method: 'GET', path: `/v1/pods/${host.pod.id}/exec` });
    expect(response.status).toBe(426);
    expect(response.headers.get('upgrade')).toBe('websocket');
  });

  it('is rejected for a removed pod, whose terminals are closed', async () => {
    const short = await startLogPod(host.agent(), 'exec sleep 1000');
    const terminal = await host.open('', short.id);
    terminal.type('echo ready\n');
    await terminal.shows('ready');
    await removePods(host.agent(), [short.id]);
    expect((await terminal.closed).code).toBe(1000);
    await expect(host.open('', short.id)).rejects.toMatchObject({ code: 'pod_not_found' });
  });
});
