/** Hostile requests to the agent: each is rejected with a message and leaves nothing on the host. */
import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { ERROR_TABLE } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { createRealHost, mustRun, type RealHost } from '../fakes/agents/real-host.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const KEY = `ssh-ed25519 ${'A'.repeat(64)} me`;
/** Internals that an error must not reveal. */
const LEAK = /node_modules|\.ts\b|\bat \w+ \(|sqlite|\/var\/|\/root|docker\.sock|stack/i;
const Refusal = z.object({
  error: z.object({ code: z.enum(Object.keys(ERROR_TABLE)), hint: z.string().min(10) }),
});

let host: RealHost;
beforeAll(async () => {
  host = await createRealHost();
});
afterAll(() => host?.close());

type Sent = { method: string; path: string; body?: string; headers?: Record<string, string> };
type Answer = { status: number; text: string };

/** Sends a request over a socket with the path exactly as given. */
function send({ method, path, body = '', headers = JSON_TYPE }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(Buffer.byteLength(body)) };
    const options = { host: '127.0.0.1', port: host.agentPort, method, path, agent: false };
    const call = request({ ...options, headers: { ...length, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    // The agent rejects a body that is too large before it has read all of it.
    call.on('error', (error) => ('code' in error && error.code === 'EPIPE' ? null : reject(error)));
    call.end(body);
  });
}

async function expectRefused(sent: Sent, field?: string): Promise<void> {
  const { status, text } = await send(sent);
  const what = `${sent.method} ${sent.path.slice(0, 80)} ${(sent.body ?? '').slice(0, 120)}`;
  expect([what, status >= 400 && status < 500, text]).toEqual([what, true, text]);
  expect([what, Refusal.safeParse(JSON.parse(text)).error]).toEqual([what, undefined]);
  expect([what, LEAK.exec(text)?.[0]]).toEqual([what, undefined]);
  if (field !== undefined) expect([what, text]).toEqual([what, expect.stringContaining(field)]);
}

const freshPath = () => `/v1/pods/${systemRandom.uuid()}`;
const put = (body: unknown): Sent => ({
  method: 'PUT',
  path: freshPath(),
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

const IMAGES = [
  '-v',
  '--privileged/x',
  '-v/x',
  '../etc/passwd',
  './x/y',
  '/absolute/path',
  'a//b',
  'a/../b',
  'ubuntu:24.04 --rm',
  'ubuntu\n--rm',
  'ubuntu\u0000',
  'ubuntu;reboot',
  '$(reboot)',
  'UBUNTU',
  'ubuntu@sha256:0000',
  `ubuntu@sha256:${'0'.repeat(64)}`,
  'ubuntu:',
  ':latest',
  'b\u00fcro/app',
  'ubuntu\u200b',
  '\u0443buntu',
  'http://registry.example.org/a',
  'user:secret@registry.example.org/a',
  'registry.example.org./a',
  '.registry.example.org/a',
  'registry.example.org:99999999/a',
  'a'.repeat(300),
  `${'a-'.repeat(40_000)}!`,
  '',
  null,
  7,
];

it.each(IMAGES)('rejects the image %j', async (reference) => {
  await expectRefused(put(podSpec({ image: { reference: reference as string } })), 'image');
});

it.each([
  'latest',
  'sha256:',
  `sha256:${'A'.repeat(64)}`,
  `sha512:${'0'.repeat(64)}`,
  `sha256:${'0'.repeat(64)}\n`,
])('rejects the digest %j', async (digest) => {
  await expectRefused(put(podSpec({ image: { reference: 'ubuntu', digest } })), 'image.digest');
});

it.each<[string, Record<string, unknown>]>([
  ['a name with =', { 'A=B': 'x' }],
  ['a name with a newline', { 'A\nB': 'x' }],
  ['a name with NUL', { 'A\u0000': 'x' }],
  ['an empty name', { '': 'x' }],
  ['a name like an option', { '--env': 'x' }],
  ['a name in Cyrillic letters', { '\u0410': 'x' }],
  ['a value with NUL', { A: 'x\u0000y' }],
  ['half a surrogate pair', { A: '\ud800' }],
  ['a number', { A: 1 }],
  ['an object', { A: { $gt: '' } }],
  ['a huge value', { A: 'x'.repeat(40_000) }],
  ['too many', Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`V${index}`, '']))],
])('rejects an environment with %s', async (_, environment) => {
  await expectRefused(put({ ...podSpec(), environment }), 'environment');
});

it.each<[string, Record<string, unknown>]>([
  ['internal_ports', { internal_ports: [0] }],
  ['internal_ports', { internal_ports: [65_536] }],
  ['internal_ports', { internal_ports: [80.5] }],
  ['internal_ports', { internal_ports: ['80:80'] }],
  ['internal_ports', { internal_ports: [-1] }],
  ['internal_ports', { internal_ports: [80, 80] }],
  ['internal_ports', { internal_ports: Array.from({ length: 65 }, (_, index) => index + 1) }],
  ['gpu_uuids', { gpu_uuids: ['all'] }],
  ['gpu_uuids', { gpu_uuids: ['0'] }],
  ['gpu_uuids', { gpu_uuids: ['void'] }],
  ['gpu_uuids', { gpu_uuids: ['GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a;rm -rf /'] }],
  ['gpu_uuids', { gpu_uuids: ['GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a\n'] }],
  ['gpu_uuids', { gpu_uuids: ['nvidia.com/gpu=all'] }],
  ['GPU', { gpu_uuids: ['GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a'] }],
  ['command', { command: ['a\u0000b'] }],
  ['command', { command: 'sh -c reboot' }],
  ['command', { command: ['\udc00'] }],
  ['entrypoint', { entrypoint: ['x'.repeat(5_000)] }],
  ['entrypoint', { entrypoint: [['/bin/sh']] }],
  ['limits', { limits: {} }],
  ['limits.memory_bytes', { limits: { ...podSpec().limits, memory_bytes: -1 } }],
  ['limits.memory_bytes', { limits: { ...podSpec().limits, memory_bytes: 2 ** 60 } }],
  ['limits.cpu_cores', { limits: { ...podSpec().limits, cpu_cores: 1e308 } }],
  ['limits.pids', { limits: { ...podSpec().limits, pids: 0 } }],
  ['limits', { limits: { ...podSpec().limits, privileged: true } }],
  ['generation', { generation: 0 }],
  ['generation', { generation: 2 ** 60 }],
  ['stop_grace_seconds', { stop_grace_seconds: 1e9 }],
  ['privileged', { privileged: true }],
  ['mounts', { mounts: [{ source: '/', target: '/host' }] }],
  ['HostConfig', { HostConfig: { Privileged: true } }],
  ['ssh_public_keys', { ssh_public_keys: [`${KEY}\n${KEY}`] }],
  ['ssh_public_keys', { ssh_public_keys: [`command="reboot" ${KEY}`] }],
  ['ssh_public_keys', { ssh_public_keys: [`restrict ${KEY}`] }],
  ['ssh_public_keys', { ssh_public_keys: [`ssh-ed25519 ${'A'.repeat(20_000)}`] }],
  ['ssh_public_keys', { ssh_public_keys: Array.from({ length: 51 }, () => KEY) }],
  ['ssh_public_keys', { ssh_public_keys: ['-----BEGIN OPENSSH PRIVATE KEY-----'] }],
])('rejects %s, for example %j', async (field, change) => {
  await expectRefused(put({ ...podSpec(), ...change }), field);
});

it.each([
  ['no JSON', '{'],
  ['a list', '[]'],
  ['null', 'null'],
  ['a text', '"spec"'],
  ['nothing', ''],
  ['bytes that are not UTF-8', '{"generation":"\ud800"}'],
  ['unclosed nesting', '['.repeat(200_000)],
  ['deep nesting', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`],
  ['endless digits', `{"generation":${'9'.repeat(10_000)}}`],
  ['only a prototype', '{"__proto__":{"generation":1}}'],
  ['a constructor', JSON.stringify({ ...podSpec(), constructor: { prototype: { x: 1 } } })],
])('rejects a body with %s', async (_, body) => {
  await expectRefused(put(body));
});

it('ignores properties that a body contains in __proto__', async () => {
  const { limits: _, ...rest } = podSpec();
  const hidden = `{"__proto__":${JSON.stringify({ limits: podSpec().limits })},${JSON.stringify(rest).slice(1)}`;
  await expectRefused(put(hidden), 'limits');
  expect(({} as { limits?: unknown }).limits).toBeUndefined();
});

it('rejects a body that is too large, whatever its content', async () => {
  const { status, text } = await send(put(podSpec({ command: ['x'.repeat(2 ** 21)] })));
  expect([status, Refusal.parse(JSON.parse(text)).error.code]).toEqual([413, 'client_error']);
});

it.each([
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/xml',
  '',
])('rejects the content type %j', async (type) => {
  const headers: Record<string, string> = type === '' ? {} : { 'content-type': type };
  await expectRefused({ ...put(podSpec()), headers });
});

const IDS = [
  '..%2f..%2fetc%2fpasswd',
  '..%252f',
  '%2e%2e',
  '..',
  '%00',
  'x',
  '0',
  '-1',
  '00000000-0000-4000-8000-00000000000g',
  '00000000-0000-4000-8000-000000000000%0a',
  '00000000-0000-4000-8000-000000000000;rm',
  '{00000000-0000-4000-8000-000000000000}',
  'a'.repeat(600),
  '%ff',
  '%',
  "'%20or%201=1",
  '__proto__',
];

it.each(IDS.map((id) => [id.slice(0, 60), id]))(
  'rejects the id %s in every path',
  async (_, id) => {
    const body = JSON.stringify(podSpec());
    const keys = JSON.stringify({ ssh_public_keys: [KEY] });
    await expectRefused({ method: 'PUT', path: `/v1/pods/${id}`, body });
    await expectRefused({ method: 'GET', path: `/v1/pods/${id}` });
    await expectRefused({ method: 'DELETE', path: `/v1/pods/${id}` });
    await expectRefused({ method: 'POST', path: `/v1/pods/${id}/reboot`, body: '{"reboot":1}' });
    await expectRefused({ method: 'PUT', path: `/v1/pods/${id}/ssh-keys`, body: keys });
    const stand = { method: 'PUT', path: `/v1/pods/${id}/standing`, body: '{"stopped":true}' };
    await expectRefused(stand);
    await expectRefused({ method: 'GET', path: `/v1/pods/${id}/logs` });
  },
);

it('rejects commands to pods that do not exist, and creates none', async () => {
  const path = freshPath();
  await expectRefused({ method: 'GET', path });
  await expectRefused({ method: 'DELETE', path });
  await expectRefused({ method: 'POST', path: `${path}/reboot`, body: '{"reboot":1}' });
  await expectRefused({ method: 'GET', path: `${path}/logs?follow=true` });
  const body = JSON.stringify({ ssh_public_keys: [KEY] });
  await expectRefused({ method: 'PUT', path: `${path}/ssh-keys`, body });
  await expectRefused({ method: 'PUT', path: `${path}/standing`, body: '{"stopped":true}' });
});

it('rejected requests leave no container, network, row or lease', async () => {
  expect(host.agent.core.records.list()).toEqual([]);
  const { leases } = host.agent.core;
  const kinds = ['port', 'gpu', 'subnet'] as const;
  expect(kinds.flatMap((kind) => leases.list(kind))).toEqual([]);
  const mine = { [LABELS.executor]: host.executorId };
  expect(await host.engine.listContainers(mine)).toEqual([]);
  expect(await host.engine.listNetworks(mine)).toEqual([]);
});

const TRICKY = [
  '$(reboot)',
  '`reboot`',
  '; reboot #',
  '-v /:/host',
  '"quoted" \'twice\' \\ back',
  'two\nlines\r\n\ttab',
  '%s %n $PATH {{.Id}}',
  'b\u00fcro \u{1f680} \u202e',
  '',
  '=',
];

it('values that resemble an injection reach the container unchanged', async () => {
  const environment = Object.fromEntries(TRICKY.map((value, index) => [`T${index}`, value]));
  const command = ['sh', '-c', 'sleep 300', ...TRICKY];
  const pod = await host.launch(undefined, {
    environment: { ...environment, LD_PRELOAD: '/no/such.so' },
    command,
  });
  expect(pod.phase).toBe('running');
  const inside = async (file: string) => {
    const pid = (await mustRun('docker', 'top', pod.container_id ?? '', '-o', 'pid,args'))
      .split('\n')
      .find((line) => /\d+ +sleep|\d+ +sh -c/.test(line))
      ?.trim()
      .split(' ')[0];
    return (await mustRun('cat', `/proc/${pid}/${file}`)).split('\0');
  };
  const variables = await inside('environ');
  for (const [name, value] of Object.entries(environment))
    expect(variables).toContain(`${name}=${value}`);
  const inspected: unknown = JSON.parse(await mustRun('docker', 'inspect', pod.container_id ?? ''));
  const [{ Config }] = z
    .tuple([z.object({ Config: z.object({ Cmd: z.array(z.string()), Env: z.array(z.string()) }) })])
    .parse(inspected);
  expect(Config.Cmd).toEqual(command);
  expect(Config.Env).toContain('LD_PRELOAD=/no/such.so');
  await host.remove(pod.id);
});

it('rejects invalid reboots, keys and log queries of a running pod, and does not change it', async () => {
  const pod = await host.launch(undefined, { ssh_public_keys: [KEY] });
  const before = (await host.view(pod.id)).ssh_keys_hash;
  for (const body of [
    '{"reboot":0}',
    '{"reboot":1e9}',
    '{"reboot":"1"}',
    '{}',
    '[]',
    '{"reboot":1,"force":true}',
  ]) {
    await expectRefused({ method: 'POST', path: `/v1/pods/${pod.id}/reboot`, body });
  }
  const keys = [
    [],
    [''],
    [`${KEY}\n${KEY}`],
    [`command="x" ${KEY}`],
    [`no-pty ${KEY}`],
    ['x'],
    [7],
    Array.from({ length: 51 }, () => KEY),
    ['ssh-ed25519 AAAA\u2028me'],
  ];
  for (const ssh_public_keys of keys) {
    const body = JSON.stringify({ ssh_public_keys });
    await expectRefused(
      { method: 'PUT', path: `/v1/pods/${pod.id}/ssh-keys`, body },
      'ssh_public_keys',
    );
  }
  for (const query of [
    'tail=-1',
    'tail=all',
    'tail=1e9',
    'tail=1&tail=2',
    `since=${'9'.repeat(200)}`,
    'follow=maybe',
    'stream=stdin',
    'stream=..%2f',
    'since=..%2f..%2fetc',
  ]) {
    await expectRefused({ method: 'GET', path: `/v1/pods/${pod.id}/logs?${query}` });
  }
  const after = await host.view(pod.id);
  expect(after).toMatchObject({
    phase: 'running',
    reboots_requested: 0,
    ssh_keys_hash: before,
    container_id: pod.container_id,
  });
  await host.remove(pod.id);
});
