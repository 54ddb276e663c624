/** The main use of the marketplace: a pod is rented through the program of `npm start`, on the real Docker engine. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSse } from '#shared/http/event-stream.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createSecureTransport } from '#shared/tls/transport.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { logInProvider } from '../../validator/embedded/demo-provider.ts';
import { runSession, shellBlock } from '../docs/sessions.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';

/** Each session follows a log for five seconds. */
const FIVE_SESSIONS_MS = 300_000;

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const home = temporaryHome();
let flags: string[] = [];
let market: MarketplaceProcess;
let executorIds: string[] = [];

beforeAll(async () => {
  flags = await freePortFlags();
  market = await startMarketplaceProcess(home, flags);
  executorIds = market.demo().executors.map((executor) => executor.id);
});

afterAll(async () => {
  await market.end();
  for (const executor of executorIds) {
    const labels = { [LABELS.executor]: executor };
    for (const container of await engine.listContainers(labels)) {
      await engine.removeContainer(container.id);
    }
    for (const network of await engine.listNetworks(labels)) await engine.removeNetwork(network.id);
    for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
  }
  removeHome(home);
});

async function listedExecutors() {
  return (await api(market.demo(), 'GET', '/executors')).body as { id: string }[];
}

async function freeNode(): Promise<string> {
  const [first] = await listedExecutors();
  if (first === undefined) throw new Error('no executor is free');
  return first.id;
}

async function rent(
  node: string,
  headers: Record<string, string> = {},
  change: Record<string, unknown> = {},
) {
  const body = { pod_name: 'e2e', template_id: market.demo().templates[0]?.id, ...change };
  return api(market.demo(), 'POST', `/executors/${node}/rent`, body, headers);
}

type PodRow = {
  id: string;
  status: string;
  ssh_connect_cmd: string | null;
  ports_mapping: Record<string, number>;
};

async function untilRunning(id: string): Promise<PodRow> {
  return eventually(
    `pod ${id} running`,
    async () => {
      const { body } = await api(market.demo(), 'GET', `/pods/${id}`);
      const pod = body as PodRow;
      return pod.status === 'RUNNING' && pod.ssh_connect_cmd !== null ? pod : false;
    },
    20_000,
  );
}

async function remove(id: string): Promise<void> {
  await api(market.demo(), 'DELETE', `/pods/${id}`);
  await eventually(
    `containers of ${id} gone`,
    async () => (await containersOf(id)).length === 0,
    20_000,
  );
}

const containersOf = (podId: string) => engine.listContainers({ [LABELS.pod]: podId });
const networksOf = (podId: string) => engine.listNetworks({ [LABELS.pod]: podId });
const volumesOf = (podId: string) => engine.listVolumes({ [LABELS.pod]: podId });

/** Yields log lines of the pod as they arrive, until `count` were read. */
async function followLines(id: string, count: number): Promise<string[]> {
  const { base_url: base, account } = market.demo();
  const reading = new AbortController();
  const response = await fetch(`${base}/pods/${id}/logs?follow=true&tail=0`, {
    headers: { 'X-API-Key': account.api_key },
    signal: systemClock.deadline(20_000, reading.signal),
  });
  expect(response.headers.get('content-type')).toMatch('text/event-stream');
  const lines: string[] = [];
  if (response.body === null) throw new Error('no stream');
  for await (const frame of readSse(response.body)) {
    const { log } = frame as { log?: string };
    if (log !== undefined) lines.push(log);
    if (lines.length >= count) break;
  }
  reading.abort();
  return lines;
}

/** Routes that the logs of central API, gateway and agents record for a request id, without duplicates. */
function routesAnsweredFor(requestId: string): string[] {
  const folder = join(home, 'logs');
  const lines = readdirSync(folder)
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'))
    .filter((line) => line.includes(`"request_id":"${requestId}"`))
    .map((line) => JSON.parse(line));
  const answered = lines.filter(({ msg }) => msg === 'answered');
  return [...new Set(answered.map(({ method, route }) => `${method} ${route}`))].toSorted();
}

/** Logs in with `ssh_connect_cmd` as clients do. */
function logIn(connectCommand: string, command: string): string {
  const [program = '', ...args] = connectCommand.split(' ');
  const settings = [
    `IdentityFile=${market.demo().ssh.private_key_file}`,
    'IdentitiesOnly=yes',
    'BatchMode=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
  ];
  const options = ['-F', '/dev/null', ...settings.flatMap((setting) => ['-o', setting])];
  return execFileSync(program, [...options, ...args, command], { encoding: 'utf8' });
}

it('prints links that respond with 200 to a browser', async () => {
  const links = [...market.output().matchAll(/^ {2}\w+ +(https?:\S+)$/gm)].map(
    ([, url = '']) => url,
  );
  expect(links).toHaveLength(4);
  for (const link of links) {
    const { status } = await fetch(link, { headers: { Accept: 'text/html' } });
    expect([link, status]).toEqual([link, 200]);
  }
});

it('prints commands that rent a pod, log in to it and remove it, exactly as printed', async () => {
  const { account } = market.demo();
  const [, block = ''] = /\(with curl and jq\):\n\n([\s\S]*?)\nCtrl-C/.exec(market.output()) ?? [];
  expect(block.split(account.api_key)).toHaveLength(2);
  const lines = block.split('\n').map((line) => line.length);
  expect(Math.max(...lines)).toBeLessThanOrEqual(120);
  const printed = await runSession([block], home);
  expect(printed).toContain('"machine_name": "NVIDIA');
  expect(printed).toMatch(/^hello from \S+$/m);
  expect(printed.trim().split('\n').at(-1)).toBe('"DELETING"');
}, 120_000);

it('a new account signs up, confirms its address with the mail in the outbox and gets the credit', async () => {
  const demo = market.demo();
  const account = { email: 'newcomer@example.com', password: 'correct horse' };
  const { body: signedUp } = await api(demo, 'POST', '/users', account);
  const { api_key: key } = signedUp as { api_key: string };
  const me = async () =>
    (await api(demo, 'GET', '/users/me', undefined, { 'X-API-Key': key })).body;
  expect(await me()).toMatchObject({ email_verified: false, balance: 0 });
  const { body: outbox } = await api(demo, 'GET', '/_local/outbox');
  const mail = (outbox as { to: string; text: string }[]).find(({ to }) => to === account.email);
  const token = /^[A-Za-z0-9_-]{43}$/m.exec(mail?.text ?? '')?.[0];
  expect((await api(demo, 'POST', '/auth/verify-email', { token })).status).toBe(200);
  expect(await me()).toMatchObject({ email_verified: true, balance: 1_000 });
});

it('quotes sample rates of alpha tokens, and has a page that completes the onboarding for payouts', async () => {
  const demo = market.demo();
  const subnets = (await api(demo, 'GET', '/balance/alpha/subnets')).body as { netuid: number }[];
  const [first] = subnets;
  const quote = `/balance/convert/alpha?amount=10&netuid=${first?.netuid}`;
  expect((await api(demo, 'GET', quote)).body).toMatchObject({ converted: expect.any(Number) });
  const begun = (await api(demo, 'POST', '/users/me/stripe-connect')).body;
  const { onboarding_url: page } = begun as { onboarding_url: string };
  const method = { referral_payout_method: 'stripe_connect' };
  const choose = () => api(demo, 'PUT', '/users/me/referral-payout-method', method);
  expect((await choose()).status).toBe(400);
  expect((await fetch(page)).status).toBe(200);
  expect((await choose()).body).toMatchObject({ ...method, stripe_onboarding_completed: true });
  const back = { referral_payout_method: 'balance' };
  expect((await api(demo, 'PUT', '/users/me/referral-payout-method', back)).status).toBe(200);
});

it('`npm run doctor` checks the marketplace with the options of its start', () => {
  const doctor = new URL('../../validator/embedded/doctor/main.ts', import.meta.url).pathname;
  const words = [doctor, '--home', home, '--no-container', '--json'];
  const report: { id: string; status: string; finding: string }[] = JSON.parse(
    // This check may fail if the engine is slow at this moment.
    spawnSync(process.execPath, words, { encoding: 'utf8' }).stdout,
  );
  const found = (id: string) => report.find((each) => each.id === id)?.finding;
  const { executors, validator } = market.demo();
  for (const [index, { id, pid }] of executors.entries()) {
    expect(found(`agent-${index + 1}/executor-id`)).toBe(id);
    expect(found(`agent-${index + 1}/agent`)).toBe(`runs as process ${pid}`);
  }
  expect(found('validator/gateway')).toContain(validator.hotkey);
  const ofValidator = report.filter(({ id }) => id.startsWith('validator/'));
  expect(ofValidator.filter(({ status }) => status !== 'ok')).toEqual([]);
});

it('starts, rents, runs, streams, reboots and removes a real container', async () => {
  const before = await listedExecutors();
  expect(before.map((row) => row.id).toSorted()).toEqual(executorIds.toSorted());

  const requestId = 'the-request-of-this-rent';
  const rented = await rent(await freeNode(), { 'X-Request-Id': requestId });
  expect(rented.status).toBe(200);
  const { id } = rented.body as PodRow;
  expect(rented.body).toMatchObject({ success: true, pod_id: id, status: 'PENDING' });
  const pod = await untilRunning(id);
  const ssh = pod.ports_mapping['22'];
  expect(pod.ssh_connect_cmd).toBe(`ssh root@127.0.0.1 -p ${ssh}`);
  expect(Object.keys(pod.ports_mapping).toSorted()).toEqual(['22', '8000']);

  expect(routesAnsweredFor(requestId)).toEqual([
    'POST /api/executors/:executor_uuid/rent',
    'PUT /v1/executors/:executorId/v1/pods/:id',
    'PUT /v1/pods/:id',
  ]);

  // Without a retry: a pod that is shown as running accepts logins.
  const greeting = logIn(pod.ssh_connect_cmd ?? '', 'echo "$USER in $(pwd)"');
  expect(greeting).toBe('root in /root\n');

  const [container] = await containersOf(id);
  expect(container).toMatchObject({
    status: 'running',
    labels: { [LABELS.managed]: '1', [LABELS.pod]: id, [LABELS.kind]: 'pod' },
  });
  const shown = execFileSync('docker', [
    'ps',
    '--filter',
    `label=${LABELS.pod}=${id}`,
    '--format',
    '{{.ID}}',
  ]);
  expect(container?.id.startsWith(shown.toString().trim())).toBe(true);

  const page = await fetch(`http://127.0.0.1:${pod.ports_mapping['8000']}/`);
  expect(page.status).toBe(200);
  const lines = await followLines(id, 3);
  expect(lines).toEqual(Array(3).fill(expect.stringMatching(/line \d+\n$/)));

  expect((await listedExecutors()).length).toBe(before.length - 1);

  const rebooted = await api(market.demo(), 'POST', `/pods/${id}/reboot`, {});
  expect(rebooted.status).toBe(200);
  await eventually(
    'container started again',
    async () => ((await containersOf(id))[0]?.startedMs ?? 0) > (container?.startedMs ?? 0),
    20_000,
  );
  const again = await untilRunning(id);
  expect(again.ports_mapping).toEqual(pod.ports_mapping);
  expect((await containersOf(id)).map((found) => found.id)).toEqual([container?.id]);

  const deleted = await api(market.demo(), 'DELETE', `/pods/${id}`);
  expect(deleted.body).toMatchObject({ success: true, status: 'DELETING' });
  expect((await api(market.demo(), 'GET', '/pods')).body).toEqual([]);
  await eventually(
    'container and network removed',
    async () => {
      const left = await Promise.all([containersOf(id), networksOf(id), volumesOf(id)]);
      return left.flat().length === 0;
    },
    20_000,
  );
  await eventually(
    'executor listed again',
    async () => (await listedExecutors()).length === before.length,
    20_000,
  );
  await expect(fetch(`http://127.0.0.1:${pod.ports_mapping['8000']}/`)).rejects.toThrow();
});

describe('the sessions of the READMEs', () => {
  it('rents a pod, logs in, follows its log and removes it, five times in a row', {
    timeout: FIVE_SESSIONS_MS,
  }, async () => {
    const session = shellBlock('README.md', 'Rent a pod');
    const output = await runSession(
      Array.from({ length: 5 }, () => session),
      home,
    );
    expect(output.match(/^hello from /gm)).toHaveLength(5);
    expect(output).toMatch(/line \d+/);
    expect(output.match(/^DELETING$/gm)).toHaveLength(5);
  });

  it('rents, edits, switches the template and schedules a removal', async () => {
    await eventually('a free node', async () => (await listedExecutors()).length > 0, 20_000);
    const blocks = ['Rent and use a pod', 'Change a pod'].map((heading) =>
      shellBlock('validator/central/README.md', heading),
    );
    const output = await runSession(blocks, home);
    expect(output).toContain('hello from ');
    expect(output).toContain('"GREETING": "hello"');
    expect(output.match(/"DELETING"/g)).toHaveLength(2);
    expect(output).not.toContain('reason_code');
  });

  it("adds a node with the provider's command line, changes its price and announces its removal", async () => {
    const output = await runSession([shellBlock('agent/README.md', 'Provider command line')], home);
    expect(output).toMatch(/^5\w+\n.*my-provider\/hotkey\.seed \(mode 0600, not encrypted\)$/m);
    expect(output).toMatch(/(?:queued|failed) {2}10\.20\.30\.40:8080 {2}8 × H100 .*\$2\.2 per GPU/);
    expect(output).toMatch(
      /: \$2\.5 per GPU and hour\n.*: announced: removal at .*\(end of the lease\)/,
    );
    expect(output).toMatch(/verdict: (?:not checked yet|failed)/);
    expect(output.trimEnd()).toMatch(/: the notice is withdrawn\n.*: removed$/);
  });

  it('signs in to the portal and changes a node', async () => {
    const output = await runSession([shellBlock('agent/README.md', 'Portal')], home);
    expect(output).toContain('"verified": true');
    expect(output).toContain('"resolution": 10');
    expect(output).toContain('1.5\n1\n');
  });
});

it('reports why a pod cannot run a notebook server, and leaves the pod unchanged', async () => {
  const rented = await rent(await freeNode(), {}, { enable_jupyter: true });
  const { id } = rented.body as PodRow;
  const { ports_mapping: ports } = await untilRunning(id);
  expect(Object.keys(ports)).toContain('8888');
  const outcome = () =>
    eventually('the outcome', async () => {
      const { body } = await api(market.demo(), 'GET', `/pods/${id}`);
      const { jupyter_installation_status: status } = body as Record<string, unknown>;
      return status === 'FAILED' && body;
    });
  expect(await outcome()).toMatchObject({ status: 'RUNNING', jupyter_url: null });
  const answer = await api(market.demo(), 'POST', `/pods/${id}/install-jupyter`, {
    jupyter_internal_port: 8888,
  });
  expect(answer.body).toMatchObject({ jupyter_installation_status: null, jupyter_error: null });
  expect(await outcome()).toMatchObject({
    jupyter_error: expect.stringMatching(/^NotebookNoPython: /),
    status: 'RUNNING',
  });
  await remove(id);
});

it('shows what the agent measured of a pod and of its node', async () => {
  const rented = await rent(await freeNode());
  const { id, gpu_count: gpus } = rented.body as PodRow & { gpu_count: string };
  await untilRunning(id);
  const measured = await eventually(
    'a sample of the pod',
    async () => {
      const { body } = await api(market.demo(), 'GET', `/pods/${id}/metrics`);
      const history = body as { samples: number[]; gpu_utilization: { max: number[] } };
      return history.samples.some((count) => count > 0) && history;
    },
    40_000,
  );
  expect(measured).toMatchObject({ pod_id: id, simulated: true, stale: false, resolution: 10 });
  expect(measured.gpu_utilization.max).toContain(0);
  const block = shellBlock('validator/central/README.md', 'Metrics');
  const { base_url: base, account } = market.demo();
  const shell = `api() { curl -s -H 'X-API-Key: ${account.api_key}' "$@"; }`;
  const output = await runSession([`API=${base}`, `POD=${id}`, shell, block], home);
  expect(output).toContain('"days": 30');
  expect(output).toContain(`"gpus": ${gpus}`);
  await remove(id);
});

it('gives a pod a secret as a file, which the engine does not show', async () => {
  const secret = { name: 'token', value: 'V4LUE of the renter' };
  expect((await api(market.demo(), 'POST', '/secrets', secret)).status).toBe(200);
  const rented = await rent(await freeNode(), {}, { secret_names: ['token'] });
  const { id } = rented.body as PodRow;
  await untilRunning(id);
  const [container] = await containersOf(id);
  const docker = (...args: string[]) => execFileSync('docker', args, { encoding: 'utf8' });
  const shell = ['sh', '-c', 'cat /run/secrets/token; stat -c " %a" /run/secrets/token'];
  expect(docker('exec', container?.id ?? '', ...shell)).toBe('V4LUE of the renter 400\n');
  expect(docker('inspect', container?.id ?? '')).not.toContain('V4LUE');
  await remove(id);
  const logs = readdirSync(join(home, 'logs')).map((name) =>
    readFileSync(join(home, 'logs', name), 'utf8'),
  );
  expect(logs.length).toBeGreaterThan(0);
  expect(logs.join()).not.toContain('V4LUE');
});

it('rents once for repeated requests with one Idempotency-Key', async () => {
  const headers = { 'Idempotency-Key': 'e2e-once' };
  const node = await freeNode();
  const answers = await Promise.all(Array.from({ length: 20 }, () => rent(node, headers)));
  const served = answers.filter((answer) => answer.status === 200);
  const busy = answers.filter((answer) => answer.status === 409);
  expect(served.length + busy.length).toBe(20);
  const ids = new Set(served.map((answer) => (answer.body as PodRow).id));
  expect(ids.size).toBe(1);
  for (const answer of busy) {
    expect(answer.body).toMatchObject({ error: { code: 'idempotency_in_progress' } });
    expect(answer.headers.get('retry-after')).toBe('1');
  }
  const [id = ''] = ids;
  await untilRunning(id);
  expect((await api(market.demo(), 'GET', '/pods')).body).toHaveLength(1);
  expect(await containersOf(id)).toHaveLength(1);

  const replayed = await rent(node, headers);
  expect(replayed.status).toBe(200);
  expect(replayed.headers.get('idempotent-replayed')).toBe('true');
  const reused = await rent(node, headers, { pod_name: 'another' });
  expect(reused.status).toBe(422);
  expect(reused.body).toMatchObject({ error: { code: 'idempotency_key_reused' } });
  await remove(id);
});

it('manages the same container after its agent was killed', async () => {
  const rented = (await rent(await freeNode())).body as PodRow & { executor_id: string };
  await untilRunning(rented.id);
  const [container] = await containersOf(rented.id);
  const agentOf = () => market.demo().executors.find(({ id }) => id === rented.executor_id);
  const killed = agentOf()?.pid ?? 0;
  expect(killed).toBeGreaterThan(0);
  process.kill(killed, 'SIGKILL');

  await eventually('agent restarted', () => agentOf()?.pid !== killed && agentOf()?.pid);
  const [line] = await eventually('log lines again', () =>
    followLines(rented.id, 1).catch(() => false as const),
  );
  expect(line).toMatch(/line \d+/);
  expect(await containersOf(rented.id)).toMatchObject([{ id: container?.id, status: 'running' }]);
  expect((await untilRunning(rented.id)).id).toBe(rented.id);
  await remove(rented.id);
});

it('rejects agent requests without a signature', async () => {
  const [executor] = market.demo().executors;
  const agent = createSecureTransport({ trust: 'anybody', clock: systemClock });
  for (const [method, path] of [
    ['GET', '/v1/pods'],
    ['GET', '/v1/inventory'],
    ['DELETE', '/v1/pods/11111111-1111-4111-8111-111111111111'],
    ['PUT', '/v1/pods/11111111-1111-4111-8111-111111111111'],
  ] as const) {
    const response = await agent.fetch(new URL(`${executor?.agent_url}${path}`), {
      method,
      headers: method === 'PUT' ? { 'content-type': 'application/json' } : {},
      ...(method === 'PUT' ? { body: '{}' } : {}),
    });
    expect([method, path, response.status]).toEqual([method, path, 401]);
  }
  for (const path of ['/healthz', '/readyz', '/version']) {
    const url = new URL(`${executor?.agent_url}${path}`);
    expect((await agent.fetch(url, { method: 'GET', headers: {} })).status).toBe(200);
  }
  agent.close();
});

it('Ctrl-C stops the marketplace and removes its pods; the next start has the same data', async () => {
  const { body } = await rent(await freeNode());
  await untilRunning((body as PodRow).id);
  const before = market.demo();
  const added = await addNode();
  market.interrupt();
  expect(await market.end('SIGINT')).toBe(0);
  expect(await containersOf((body as PodRow).id)).toEqual([]);

  market = await startMarketplaceProcess(home, flags);
  const after = market.demo();
  expect(after.account).toEqual(before.account);
  expect(after.executors.map(({ id }) => id)).toEqual(before.executors.map(({ id }) => id));
  expect((await api(after, 'GET', '/pods')).body).toEqual([]);
  const nodes = await (await demoProvider()).listNodes();
  expect(nodes.map(({ id }) => id)).toContain(added);
});

async function demoProvider() {
  const { portal_url: url, provider } = market.demo();
  const seed = Buffer.from(readFileSync(provider.seed_file, 'utf8').trim(), 'hex');
  return logInProvider(url, createSigner(seed), systemClock);
}

/** Adds a node through the demo provider, as the README describes. */
async function addNode(): Promise<string> {
  const provider = await demoProvider();
  return provider.ensureNode({ ip: '127.0.0.1', port: 9, gpuType: 'H200', gpuCount: 1 });
}
