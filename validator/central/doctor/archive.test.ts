/** The central API's doctor and its archive, on a database that the central API has filled with secrets. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readArchive } from '#shared/check/archive/archive.ts';
import { type Finding, runDoctor, systemDoctorPorts } from '#shared/check/doctor.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createCommandProgress } from '#shared/runtime/progress.ts';
import { freePorts } from '../../../test/fakes/free-ports.ts';
import { TEST_SECRET, writeCentralKeys } from '../../../test/fakes/scenes/central-fixture.ts';
import { createPodScene } from '../../../test/fakes/scenes/pod-scene.ts';
import { hotkey } from '../../../test/fixtures/cycle-set.ts';
import { openCentralDatabase } from '../platform/database/database.ts';
import { centralDoctor } from './doctor.ts';

const home = mkdtempSync(join(tmpdir(), 'podwright-central-'));
const at = (name: string) => join(home, name);
afterAll(() => rmSync(home, { recursive: true }));

/** Planted in the configuration. */
const CONFIGURED = {
  CENTRAL_SMTP_URL: 'smtp://ann:smtp-Hush%2F1@mail.example:587',
  CENTRAL_STRIPE_SECRET_KEY: 'sk_live_HushOfStripe0123456789',
  CENTRAL_STRIPE_CALLBACK_SECRET: 'whsec_HushOfCallbacks/0123+45=',
  CENTRAL_S3_SECRET_ACCESS_KEY: 'hush-of-the-bucket',
  CENTRAL_BACKUP_RESTIC_REST_PASSWORD: 'hush-of-the-backups',
  CENTRAL_MINER_TOKEN: 'hush-of-the-miner',
};
/** Planted in the database. */
const STORED = {
  account: 'hush of an account\nin "lines"',
  template: 'hush of a template',
  registry: 'hush of a registry',
};
const PASSWORD_OF_DATABASE = 'hush-of-postgres';
/** Everything that an archive must not contain. */
let planted: string[];
let environment: Record<string, string>;

beforeAll(async () => {
  writeCentralKeys(home);
  const db = await openCentralDatabase(at('central.db'));
  const scene = await createPodScene({ db, webhookTargets: 'loopback' });
  const made = async (path: string, body: object) => {
    const { status, body: created } = await scene.call('POST', path, body);
    expect([path, status < 300]).toEqual([path, true]);
    return created;
  };
  await made('/secrets', { name: 'hf', value: STORED.account });
  await scene.template({ environment: { HF_TOKEN: STORED.template } });
  await made('/docker-credentials', {
    name: 'hub',
    docker_username: 'ann',
    docker_password: STORED.registry,
  });
  const webhook = await made('/webhooks', { url: 'http://127.0.0.1:1/' });
  await scene.running({ secret_names: ['hf'] });
  const session = await scene.market.logIn();
  const token = await scene.market.portal('POST', '/auth/tokens', {
    token: session,
    body: { name: 'fleet' },
  });
  const apiKey = scene.account.key['x-api-key'];
  await scene.close();
  planted = [
    ...Object.values(CONFIGURED),
    ...['smtp-Hush%2F1', 'smtp-Hush/1', '0a'.repeat(32)],
    Buffer.from(TEST_SECRET).toString('hex'),
    Buffer.from(TEST_SECRET).toString('base64'),
    ...Object.values(STORED).flatMap((text) => text.split('\n')),
    webhook.secret,
  ];
  // Recognised by their form, because the database has only hashes of them.
  const tokens = [session, token.body.data.token, apiKey];
  const inForms = planted.flatMap((text) => [
    `plain ${text} end`,
    JSON.stringify({ level: 30, msg: `got ${text}`, value: text }),
    `https://host/?q=${encodeURIComponent(text)}`,
    Buffer.from(text).toString('base64'),
  ]);
  const lines = [...inForms, ...tokens.map((text) => JSON.stringify({ msg: `token ${text}` }))];
  planted.push(...tokens);
  const dsn = `postgres://podwright:${PASSWORD_OF_DATABASE}@127.0.0.1:1/podwright`;
  // The password of a server that this configuration does not name is recognised in its address only.
  writeFileSync(at('central.log'), [...lines, dsn, 'the last line', ''].join('\n'));
  const { first } = await freePorts(2);
  environment = {
    PATH: process.env['PATH'] ?? '',
    CENTRAL_HOME: home,
    CENTRAL_PORT: String(first),
    CENTRAL_GATEWAY_URL: `http://127.0.0.1:${first + 1}`,
    CENTRAL_GATEWAY_HOTKEY: hotkey(6),
    CENTRAL_PAYMENTS: 'stripe',
    CENTRAL_S3_ACCESS_KEY_ID: 'AKIDEXAMPLE',
    CENTRAL_BACKUP_RESTIC_REST_USERNAME: 'ann',
    CENTRAL_MINER_URL: 'https://miner.example',
    ...CONFIGURED,
  };
});

async function run(args: readonly string[], change: Record<string, string> = {}) {
  let [out, error] = ['', ''];
  const doctor = centralDoctor(systemDoctorPorts({ ...environment, ...change }));
  const status = await runDoctor(doctor, args, {
    out: (text) => (out += text),
    error: (text) => (error += text),
    progress: createCommandProgress(systemClock, { write: () => true }),
    colours: false,
    folder: '.',
  });
  return { status, out, error };
}

it('writes an archive without any secret of the configuration, the database or a log', async () => {
  const path = at('central.tar.gz');
  const written = await run(['--archive', path, '--log', at('central.log')]);
  expect(written).toMatchObject({ status: 0, error: '' });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const files = await readArchive(path);
  const text = files.map((file) => file.text).join('\n');
  expect(files.map(({ name }) => name)).toEqual([
    ...['versions.txt', 'configuration.txt', 'doctor.txt', 'database.txt'],
    ...['units.txt', 'journal.txt', 'log-1-central.log.txt'],
  ]);
  for (const words of ['CENTRAL_HOME ', 'pods: 1 rows', 'the last line', 'fail     gateway']) {
    expect(text).toContain(words);
  }
  for (const each of planted) {
    const forms = [each, JSON.stringify(each).slice(1, -1), encodeURIComponent(each)];
    for (const form of [...forms, Buffer.from(each).toString('base64')]) {
      expect(text.includes(form), form).toBe(false);
    }
  }
  expect(text).not.toMatch(/hush/i);
});

it('leaves out logs if the secrets in the database cannot be read', async () => {
  const CENTRAL_DATABASE = `postgres://podwright:${PASSWORD_OF_DATABASE}@127.0.0.1:1/podwright`;
  const path = at('away.tar.gz');
  const written = await run(['--archive', path, '--log', at('central.log')], { CENTRAL_DATABASE });
  expect(written.status).toBe(0);
  const files = await readArchive(path);
  const log = files.find(({ name }) => name.startsWith('log-1'))?.text;
  expect(log).toMatch(/^left out, because secrets could not be redacted: .*ECONNREFUSED/);
  expect(files.map(({ text }) => text).join()).not.toMatch(/hush/i);
});

it('leaves out logs if the configuration is not valid', async () => {
  const path = at('invalid.tar.gz');
  await run(['--archive', path, '--log', at('central.log')], { CENTRAL_PORT: 'x' });
  const files = await readArchive(path);
  expect(files.find(({ name }) => name.startsWith('log-1'))?.text).toMatch(
    /^left out, .*not valid/,
  );
  expect(files.map(({ text }) => text).join()).not.toMatch(/hush/i);
});

it('reports what works, and the observed cause of what does not', async () => {
  const { status, out } = await run(['--json']);
  const findings: Finding[] = JSON.parse(out);
  const states = Object.fromEntries(findings.map((each) => [each.id, each.status]));
  expect(status).toBe(1);
  expect(states).toMatchObject({ database: 'ok', key: 'ok', secret: 'ok', gateway: 'fail' });
  expect(findings.find(({ id }) => id === 'gateway')?.finding).toContain(
    'the connection was refused: no program listens at the port',
  );
  rmSync(at('central.secret'));
  const later: Finding[] = JSON.parse((await run(['--json'])).out);
  expect(later.find(({ id }) => id === 'secret')).toMatchObject({
    status: 'fail',
    remedy: expect.stringContaining('restore the original file'),
  });
});
