/** The provider's command line against the real central API over HTTP. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isEnrolmentSigned } from '#shared/api/agent/identity.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { readDocument } from '../../test/docs/generated.ts';
import { createTestMarket, type TestMarket } from '../../test/fakes/scenes/market-fixture.ts';
import { VersionResponse } from '../central/platform/system/system.routes.ts';
import { EXAMPLES, runProvider } from './command-line.ts';
import { providerHome } from './config.ts';

let market: TestMarket;
let url: string;
let home: string;
beforeAll(async () => {
  market = await createTestMarket();
  await market.server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = market.server.server.address() as AddressInfo;
  url = `http://${hostAndPort('127.0.0.1', port)}`;
});
afterAll(() => market.close());
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-provider-'));
});
afterEach(() => rmSync(home, { recursive: true }));

async function run(...args: string[]) {
  const printed = { out: '', error: '' };
  const ports = { home, clock: market.clock, random: systemRandom };
  const status = await runProvider(args, ports, {
    out: (text) => {
      printed.out += text;
    },
    error: (text) => {
      printed.error += text;
    },
  });
  return { status, ...printed };
}

/** Runs a command that succeeds, and returns its JSON. */
async function result(...args: string[]) {
  const { status, out, error } = await run(...args, '--json');
  expect([status, error]).toEqual([0, '']);
  return JSON.parse(out);
}

/** Runs a command that fails, and returns its problem. */
async function problem(...args: string[]) {
  const { status, out, error } = await run(...args, '--json');
  expect(out).toBe('');
  return { status, ...JSON.parse(error) };
}

/** Stores the key of the market's provider, and logs in. A second login in the same second would be rejected. */
async function loggedIn() {
  write('provider.seed', '02'.repeat(32));
  await result('key', '--import', join(home, 'provider.seed'));
  await market.clock.advance(1_000);
  return result('login', '--url', url);
}

function write(name: string, content: string): string {
  const path = join(home, name);
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}

const mode = (path: string) => statSync(path).mode & 0o777;

describe('key', () => {
  it('creates a key once, in a file of mode 0600', async () => {
    const made = await result('key');
    expect(made).toMatchObject({ encrypted: false, created: true });
    expect(mode(made.file)).toBe(0o600);
    expect(await result('key')).toEqual({ ...made, created: false });
    const { out } = await run('key');
    expect(out).toBe(`${made.hotkey}\n${made.file} (mode 0600, not encrypted)\n`);
    expect(out).not.toContain(readFileSync(made.file, 'utf8').trim());
  });

  it('encrypts the key with a passphrase, which later commands need', async () => {
    const passphrase = write('passphrase', 'correct horse battery\n');
    const made = await result('key', '--passphrase-file', passphrase);
    expect(made.encrypted).toBe(true);
    expect(mode(made.file)).toBe(0o600);
    expect(await problem('login', '--url', url)).toMatchObject({
      code: 'usage',
      message: `The key ${made.file} is encrypted`,
      hint: expect.stringContaining('--passphrase-file'),
    });
    const login = await result('login', '--url', url, '--passphrase-file', passphrase);
    expect(login.hotkey).toBe(made.hotkey);
    const wrong = write('wrong', 'another passphrase');
    expect(await problem('key', '--passphrase-file', wrong)).toMatchObject({
      status: 6,
      code: 'configuration',
    });
  });

  it('imports a seed, and an encrypted key file with its passphrase', async () => {
    const seed = write('seed', `0x${'02'.repeat(32)}\n`);
    const passphrase = write('passphrase', 'correct horse battery');
    const made = await result('key', '--import', seed, '--passphrase-file', passphrase);
    expect(made.hotkey).toBe(market.provider.hotkey);
    const exported = write('exported.json', readFileSync(made.file, 'utf8'));
    rmSync(made.file);
    expect(await problem('key', '--import', exported)).toMatchObject({ code: 'usage' });
    const again = ['key', '--import', exported, '--passphrase-file', passphrase];
    expect(await result(...again)).toEqual(made);
  });

  it('never replaces a key, and rejects files that are readable by others, not keys or missing', async () => {
    const seed = write('seed', '03'.repeat(32));
    chmodSync(seed, 0o644);
    expect(await problem('key', '--import', seed)).toMatchObject({
      status: 6,
      message: expect.stringContaining(`chmod 600 ${seed}`),
    });
    expect(await problem('key', '--import', write('text', 'hello'))).toMatchObject({ status: 6 });
    expect(await problem('key', '--import', join(home, 'none'))).toMatchObject({ status: 6 });
    const short = write('short', '1234567');
    expect(await problem('key', '--passphrase-file', short)).toMatchObject({
      message: expect.stringContaining('fewer than 8'),
    });
    await result('key');
    expect(await problem('key', '--import', seed)).toMatchObject({ status: 1, code: 'key_exists' });
  });
});

describe('login', () => {
  it('stores the session in a file of mode 0600, and remembers the address', async () => {
    const session = await loggedIn();
    expect(session).toEqual({
      portal_url: `${url}/portal`,
      hotkey: market.provider.hotkey,
      file: join(home, 'session.json'),
    });
    expect(mode(session.file)).toBe(0o600);
    await market.clock.advance(1_000);
    const { out } = await run('login');
    expect(out).toContain(`Logged in at ${url}/portal as ${market.provider.hotkey}, for 7 days.`);
    expect(out).not.toContain(JSON.parse(readFileSync(session.file, 'utf8')).token);
    for (const suffix of ['/', '/api', '/portal/']) {
      await market.clock.advance(1_000);
      expect(await result('login', '--url', url + suffix)).toEqual(session);
    }
  });

  it('names what to do without a key, without an address, and when the clock is wrong', async () => {
    expect(await problem('login', '--url', url)).toMatchObject({
      hint: expect.stringContaining('npm run provider -- key'),
    });
    await result('key');
    expect(await problem('login')).toMatchObject({ code: 'not_logged_in' });
    expect(await problem('login', '--url', 'api.example.org')).toMatchObject({ code: 'usage' });
    const late = { now: () => market.clock.now() - 400_000 };
    const ports = { home, clock: { ...market.clock, ...late }, random: systemRandom };
    let error = '';
    const terminal = {
      out() {},
      error(text: string) {
        error += text;
      },
    };
    expect(await runProvider(['login', '--url', url], ports, terminal)).toBe(1);
    expect(error).toMatch(/signed time is more than 300 seconds.*this computer's clock/s);
  });

  it('warns of an address without TLS on another host, before the session could be read', async () => {
    await result('key');
    const { error, status } = await run('login', '--url', 'http://192.0.2.1:1');
    expect(status).toBe(1);
    expect(error).toMatch(/warning: http:\/\/192.0.2.1:1\/portal is not HTTPS.*does not answer/s);
  });

  it('reports an API that does not answer, and a server that is no central API', async () => {
    await result('key');
    expect(await problem('login', '--url', 'http://127.0.0.1:9')).toMatchObject({
      status: 1,
      code: 'api_unreachable',
      hint: expect.stringContaining('--url'),
    });
    const strange = createServer((_, response) => response.end('<html>'));
    await new Promise<void>((resolve) => strange.listen(0, '127.0.0.1', resolve));
    const { port } = strange.address() as AddressInfo;
    expect(await problem('login', '--url', `http://127.0.0.1:${port}`)).toMatchObject({
      code: 'unexpected_answer',
      message: expect.stringContaining('not a central API'),
    });
    strange.close();
  });
});

describe('sign', () => {
  it('signs a time so that the portal accepts it as a log-in, and nothing else', async () => {
    await result('key');
    await market.clock.advance(1_000);
    const time = String(Math.floor(market.clock.now() / 1_000));
    const { hotkey, ...signed } = await result('sign', time);
    const body = { miner_hotkey: hotkey, ...signed };
    const { status } = await market.portal('POST', '/auth/login-flexible', { body });
    expect(status).toBe(200);
    expect((await run('sign', time)).out).toMatch(new RegExp(`^${hotkey}\n0x[0-9a-f]{128}\n$`));
    for (const text of ['', 'transfer', '1'.repeat(13)]) {
      expect(await problem('sign', text)).toMatchObject({ status: 2, code: 'usage' });
    }
  });
});

describe('nodes', () => {
  const node = ['--address', '10.1.2.3', '--gpu-type', 'H100', '--gpu-count', '8'];
  let port = 9_000;
  const add = (...more: string[]) => {
    port += 1;
    return result('add', ...node, '--port', String(port), ...more);
  };

  it('add stores address, GPUs and price, and names the next step', async () => {
    await loggedIn();
    const added = await add('--price', '2.25');
    expect(added).toMatchObject({
      executor_ip_address: '10.1.2.3',
      executor_ip_port: String(port),
      gpu_count: 8,
      price_per_gpu: 2.25,
      status: 'queued',
    });
    const { out } = await run('add', ...node, '--port', '9900');
    expect(out).toMatch(/AGENT_EXECUTOR_ID=[0-9a-f-]{36}\..*provider -- variables [0-9a-f-]{36}/s);
    expect(await problem('add', ...node, '--port', '9900')).toMatchObject({ code: 'conflict' });
  });

  it.each<[string, string[], string, RegExp]>([
    ['no address', ['--gpu-type', 'H100'], 'usage', /--address is required/],
    ['a host name', ['--address', 'gpu.example', '--gpu-type', 'H100'], 'bad_request', /not an IP/],
    ['an unknown type', ['--address', '10.1.2.3', '--gpu-type', 'X1'], 'bad_request', /X1/],
    ['a port that is no number', [...node, '--port', 'x'], 'usage', /--port x/],
    ['a port that is too high', [...node, '--port', '70000'], 'validation_error', /body\.port/],
    ['a negative price', [...node, '--price=-1'], 'usage', /--price -1/],
    ['a price above the range', [...node, '--price', '9999'], 'bad_request', /price/i],
    ['a misspelt option', [...node, '--gpus', '8'], 'usage', /--gpus/],
    [
      'several problems at once',
      ['--gpu-type', '--port', 'x', '--pirce', '2'],
      'usage',
      /--gpu-type needs a value.*--pirce: did you mean --price\?.*--address is required.*--port x: not/s,
    ],
    ['a word too many', [...node, 'now'], 'usage', /unexpected now/],
  ])('add rejects %s', async (_, args, code, message) => {
    await loggedIn();
    expect(await problem('add', ...args)).toMatchObject({
      code,
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/./),
    });
  });

  it('list shows state, verdict and remedies', async () => {
    await loggedIn();
    const { id } = await add();
    const check = {
      check_id: 'clock',
      mode: 'enforce',
      passed: false,
      reason_code: 'CLOCK_SKEW',
      measured: '90 s',
      required: '5 s',
      message: 'The clock is wrong\u001b[2J',
      remediation: 'Set the clock.',
      severity: 'error',
      category: 'env',
      fatal: false,
    } as const;
    await market.report({ id, port }, { verdict: 'failed', checks: [check] });
    const { out } = await run('list');
    const block = out.slice(out.indexOf(id));
    expect(block).toMatch(/^\S+ {2}failed {2}10\.1\.2\.3:\d+ {2}8 × H100 .*\$\S+ per GPU/);
    expect(block).toContain('CLOCK_SKEW: The clock is wrong[2J (measured: 90 s; required: 5 s)');
    expect(block).toContain('remedy: Set the clock.');
    expect(block).toContain('run:    timedatectl set-ntp true    (requires root on the host)');
    const one = await run('list', id);
    expect(one.out).toMatch(/verdict: failed at \d{4}-.* UTC by 5/);
    expect(one.out).toContain('  failed clock: The clock is wrong');
    expect((await result('list', id)).verification.verified).toBe(false);
    const all = await result('list');
    expect(all.map((each: { id: string }) => each.id)).toContain(id);
  });

  it('price changes the price, and notice announces and withdraws', async () => {
    await loggedIn();
    const { id } = await add();
    expect((await result('price', id, '2.5')).price_per_gpu).toBe(2.5);
    expect((await run('price', id, '2.4')).out).toBe(`${id}: $2.4 per GPU and hour\n`);
    expect(await problem('price', id, 'much')).toMatchObject({ code: 'usage' });
    expect(await problem('price', id)).toMatchObject({ code: 'usage', message: 'price needs USD' });
    const removal = ['notice', id, '--removal', '--in', '3d', '--reason', 'moving'];
    expect(await result(...removal)).toMatchObject({ permanent_removal: true, reason: 'moving' });
    expect((await run('list')).out).toMatch(/notice: removal at \d{4}-.*Z \(moving\)/);
    expect(await problem(...removal)).toMatchObject({
      code: 'conflict',
      hint: expect.stringContaining('notice ID --withdraw'),
    });
    expect((await run('notice', id, '--withdraw')).out).toBe(`${id}: the notice is withdrawn\n`);
    expect(await problem('notice', id, '--withdraw')).toMatchObject({ code: 'bad_request' });
    const later = '2027-01-01T00:00:00+01:00';
    const { status } = await run('notice', id, '--minutes', '30', '--at', later);
    expect(status).toBeLessThan(2);
  });

  it('variables prints what the agent needs, with the validator that the central API names', async () => {
    await loggedIn();
    const { id } = await add();
    const answer = await fetch(`${url}/api/version`);
    const version = VersionResponse.parse(await answer.json());
    const trusted = `${version.validator_hotkey}=validator-control`;
    expect((await run('variables', id)).out).toBe(
      `AGENT_EXECUTOR_ID=${id}\nAGENT_TRUSTED_KEYS=${trusted}\n`,
    );
    expect(await result('variables', id)).toEqual({
      AGENT_EXECUTOR_ID: id,
      AGENT_TRUSTED_KEYS: trusted,
    });
    expect(await problem('variables', systemRandom.uuid())).toMatchObject({
      code: 'node_not_found',
    });
  });

  it('remove ends a node for good', async () => {
    await loggedIn();
    const { id } = await add();
    expect((await run('remove', id)).out).toBe(`${id}: removed\n`);
    expect(await problem('remove', id)).toMatchObject({ code: 'node_not_found' });
    expect((await run('list')).out).not.toContain(id);
  });

  it.each<[string, string[], string]>([
    ['no kind', ['--in', '72h'], 'usage'],
    ['two kinds', ['--removal', '--minutes', '5', '--in', '72h'], 'usage'],
    ['no time', ['--removal'], 'usage'],
    ['two times', ['--removal', '--in', '72h', '--at', '2027-01-01T00:00:00Z'], 'usage'],
    ['a duration without a unit', ['--removal', '--in', '72'], 'usage'],
    ['a time without an offset', ['--removal', '--at', '2027-01-01T00:00:00'], 'bad_request'],
    ['a removal too soon', ['--removal', '--in', '1h'], 'bad_request'],
    ['maintenance that is too long', ['--minutes', '90', '--in', '30h'], 'bad_request'],
    ['a withdrawal with other options', ['--withdraw', '--removal'], 'usage'],
  ])('notice rejects %s', async (_, args, code) => {
    await loggedIn();
    const { id } = await add();
    expect(await problem('notice', id, ...args)).toMatchObject({ code });
  });

  it('reports an unknown node, a node of another provider, and an expired session', async () => {
    await loggedIn();
    const { id } = await add();
    const unknown = { code: 'node_not_found', hint: expect.stringContaining('provider -- list') };
    for (const command of [['list'], ['price'], ['notice']]) {
      const more = { price: ['2'], notice: ['--withdraw'] }[command[0] ?? ''] ?? [];
      expect(await problem(...command, systemRandom.uuid(), ...more)).toMatchObject(unknown);
      expect(await problem(...command, '../../x', ...more)).toMatchObject({ status: 1 });
    }
    rmSync(join(home, 'hotkey.seed'));
    await result('key');
    await result('login', '--url', url);
    expect(await problem('price', id, '2')).toMatchObject({ code: 'forbidden' });
    await market.clock.advance(8 * 86_400_000);
    expect(await problem('list')).toMatchObject({
      status: 1,
      code: 'session_expired',
      hint: 'Log in again: npm run provider -- login',
    });
  });
});

describe('enrol', () => {
  it('signs a request, and rejects anything else', async () => {
    await result('key');
    const request = {
      executor_id: systemRandom.uuid(),
      public_key: 'ab'.repeat(32),
      expires_ms: market.clock.now(),
    };
    const enrolment = await result('enrol', JSON.stringify(request));
    expect(isEnrolmentSigned(enrolment)).toBe(true);
    expect(enrolment).toMatchObject(request);
    expect(await problem('enrol', '{"executor_id": 1}')).toMatchObject({
      status: 2,
      message: expect.stringMatching(/executor_id: .*public_key: /),
    });
    expect(await problem('enrol', 'x')).toMatchObject({ code: 'usage' });
  });
});

it('prints help, and suggests the closest command', async () => {
  const { out, status } = await run('--help');
  expect(status).toBe(0);
  expect(out).toContain(EXAMPLES.split('\n')[3]);
  for (const name of [
    'key',
    'login',
    'add',
    'variables',
    'list',
    'price',
    'notice',
    'remove',
    'enrol',
  ]) {
    expect((await run(name, '--help')).out).toMatch(new RegExp(`^npm run provider -- ${name}`));
  }
  expect((await run('--version')).out).toMatch(/^\d/);
  expect(await problem('lst')).toMatchObject({
    status: 2,
    message: 'unknown command lst; did you mean list?',
  });
  expect((await run()).status).toBe(2);
});

it('prints the examples of the README', () => {
  expect(readDocument('agent/README.md')).toContain(`\`\`\`sh\n${EXAMPLES}\`\`\`\n`);
});

it('stores key and session below the home of the user unless PROVIDER_HOME names a folder', () => {
  expect(providerHome({}, '/home/me')).toBe('/home/me/.podwright');
  expect(providerHome({ PROVIDER_HOME: '/x' }, '/home/me')).toBe('/x');
});
