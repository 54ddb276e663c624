/** The sessions of the READMEs, the doctor, metrics and notebooks, with a marketplace as the program of `npm start`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readArchive } from '#shared/check/archive/archive.ts';
import { runSession, shellBlock } from '../docs/sessions.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  demo,
  freeNode,
  home,
  listedExecutors,
  type PodRow,
  remove,
  rent,
  runMarketplace,
  untilRunning,
} from './marketplace-scene.ts';

/** Timeout of five sessions in milliseconds; each session follows a log for five seconds. */
const FIVE_SESSIONS_MS = 300_000;
const DOCTOR = new URL('../../validator/embedded/doctor/main.ts', import.meta.url).pathname;

runMarketplace();

it('quotes sample rates of alpha tokens, and has a page that completes the onboarding for payouts', async () => {
  const values = demo();
  const subnets = (await api(values, 'GET', '/balance/alpha/subnets')).body as { netuid: number }[];
  const [first] = subnets;
  const quote = `/balance/convert/alpha?amount=10&netuid=${first?.netuid}`;
  expect((await api(values, 'GET', quote)).body).toMatchObject({ converted: expect.any(Number) });
  const begun = (await api(values, 'POST', '/users/me/stripe-connect')).body;
  const { onboarding_url: page } = begun as { onboarding_url: string };
  const method = { referral_payout_method: 'stripe_connect' };
  const choose = () => api(values, 'PUT', '/users/me/referral-payout-method', method);
  expect((await choose()).status).toBe(400);
  expect((await fetch(page)).status).toBe(200);
  expect((await choose()).body).toMatchObject({ ...method, stripe_onboarding_completed: true });
  const back = { referral_payout_method: 'balance' };
  expect((await api(values, 'PUT', '/users/me/referral-payout-method', back)).status).toBe(200);
});

it('`npm run doctor` checks the marketplace with the options of its start', () => {
  const words = [DOCTOR, '--home', home, '--no-container', '--json'];
  const report: { id: string; status: string; finding: string }[] = JSON.parse(
    // This check may fail if the engine is slow at this moment.
    spawnSync(process.execPath, words, { encoding: 'utf8' }).stdout,
  );
  const found = (id: string) => report.find((each) => each.id === id)?.finding;
  const { executors, validator } = demo();
  for (const [index, { id, pid }] of executors.entries()) {
    expect(found(`agent-${index + 1}/executor-id`)).toBe(id);
    expect(found(`agent-${index + 1}/agent`)).toBe(`runs as process ${pid}`);
  }
  expect(found('validator/gateway')).toContain(validator.hotkey);
  const ofValidator = report.filter(({ id }) => id.startsWith('validator/'));
  expect(ofValidator.filter(({ status }) => status !== 'ok')).toEqual([]);
});

it('`npm run doctor -- --archive` collects all processes, without the secrets of the home', async () => {
  const path = join(home, 'archive.tar.gz');
  const { status, stderr } = spawnSync(
    process.execPath,
    [DOCTOR, '--home', home, '--archive', path],
    { encoding: 'utf8' },
  );
  expect([status, stderr]).toEqual([0, expect.any(String)]);
  const files = await readArchive(path);
  const names = files.map(({ name }) => name);
  for (const name of [
    'doctor.txt',
    'central/database.txt',
    'central/metrics.txt',
    'central/log-1-marketplace.log.txt',
    'validator/ledger.txt',
    'agent-1/containers.json',
    'agent-2/log-1-agent-2.log.txt',
  ]) {
    expect(names).toContain(name);
  }
  const text = files.map((file) => file.text).join('\n');
  for (const secret of [demo().account.api_key, demo().account.password]) {
    expect(text.includes(secret)).toBe(false);
  }
}, 180_000);

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
      const { body } = await api(demo(), 'GET', `/pods/${id}`);
      const { jupyter_installation_status: status } = body as Record<string, unknown>;
      return status === 'FAILED' && body;
    });
  expect(await outcome()).toMatchObject({ status: 'RUNNING', jupyter_url: null });
  const answer = await api(demo(), 'POST', `/pods/${id}/install-jupyter`, {
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
      const { body } = await api(demo(), 'GET', `/pods/${id}/metrics`);
      const history = body as { samples: number[]; gpu_utilization: { max: number[] } };
      return history.samples.some((count) => count > 0) && history;
    },
    40_000,
  );
  expect(measured).toMatchObject({ pod_id: id, simulated: true, stale: false, resolution: 10 });
  expect(measured.gpu_utilization.max).toContain(0);
  const block = shellBlock('validator/central/README.md', 'Metrics');
  const { base_url: base, account } = demo();
  const shell = `api() { curl -s -H 'X-API-Key: ${account.api_key}' "$@"; }`;
  const output = await runSession([`API=${base}`, `POD=${id}`, shell, block], home);
  expect(output).toContain('"days": 30');
  expect(output).toContain(`"gpus": ${gpus}`);
  await remove(id);
});
