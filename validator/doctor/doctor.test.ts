/** The validator's doctor as a process, with a real central API. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { Finding } from '#shared/check/doctor.ts';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import {
  type CentralProcess,
  startCentralProcess,
} from '../../test/fakes/scenes/central-process.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const LIMITS = { timeoutMs: 60_000, maxOutputBytes: 1_000_000 };
const Report = z.array(Finding);
const SEED = '07'.repeat(32);
const { hotkey } = createSigner(new Uint8Array(32).fill(7));

const folder = mkdtempSync(join(tmpdir(), 'podwright-validator-doctor-'));
const at = (name: string) => join(folder, name);
let central: CentralProcess;
let gateway: Server;
let right: Record<string, string>;

beforeAll(async () => {
  const { first: port } = await freePorts(1);
  central = await startCentralProcess({
    CENTRAL_HOME: at('central'),
    CENTRAL_GATEWAY_URL: 'http://127.0.0.1:1',
    CENTRAL_GATEWAY_HOTKEY: hotkey,
  });
  gateway = createServer((_, response) => response.end(JSON.stringify({ hotkey })));
  await new Promise<void>((resolve) => gateway.listen(port, '127.0.0.1', resolve));
  chmodSync(folder, 0o700);
  writeFileSync(at('hotkey.seed'), SEED, { mode: 0o600 });
  writeFileSync(
    at('metagraph.json'),
    JSON.stringify({ block: null, neurons: [{ uid: 0, hotkey }] }),
  );
  await (await openEvidenceStore(at('ledger.db'))).destroy();
  right = {
    VALIDATOR_HOME: folder,
    VALIDATOR_PORT: String(port),
    VALIDATOR_CENTRAL_URL: `${central.origin}/api`,
    VALIDATOR_CENTRAL_HOTKEY: String((await central.call('GET', '/version')).body['hotkey']),
    VALIDATOR_METAGRAPH: at('metagraph.json'),
  };
});
afterAll(async () => {
  await central?.end();
  gateway?.close();
  rmSync(folder, { recursive: true });
});

const run = (args: readonly string[], environment: Record<string, string>) => {
  const { PATH = '' } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment };
  return runCommand(process.execPath, [MAIN, ...args], { ...LIMITS, env });
};

async function findings(environment: Record<string, string>) {
  const { exitCode, stdout, stderr } = await run(['doctor', '--json'], environment);
  expect(stderr).toBe('');
  const list = Report.parse(JSON.parse(stdout));
  const isFailed = list.some(({ status }) => status === 'fail');
  expect(exitCode).toBe(isFailed ? 1 : list.some(({ timed_out }) => timed_out) ? 3 : 0);
  const needy = list.filter(({ status }) => status === 'warn' || status === 'fail');
  expect(needy.filter(({ remedy }) => remedy === null)).toEqual([]);
  return Object.fromEntries(list.map(({ id, status, finding }) => [id, `${status}: ${finding}`]));
}

it('reports no failure for a valid configuration', async () => {
  expect(await findings(right)).toMatchObject({
    configuration: 'ok: every VALIDATOR_* variable is valid',
    key: `ok: ${hotkey} can sign`,
    'state-folder': expect.stringMatching(/^ok: .*, mode 0700$/),
    ledger: expect.stringMatching(/^ok: schema (\d+) of \1, \d+ rows$/),
    'ledger-file': 'ok: undamaged; 0 backups',
    policies: expect.stringMatching(/^ok: /),
    metagraph: 'ok: 1 registered',
    central: expect.stringMatching(/^ok: .* accepts our signature and lists 0 executors$/),
    'central-hotkey': expect.stringMatching(/^ok: .* signs with VALIDATOR_CENTRAL_HOTKEY$/),
    gateway: expect.stringMatching(/^ok: answers at /),
    registry: 'ok: VALIDATOR_AGENT_IMAGE is not set: no image is signed',
    'clock-skew': expect.stringMatching(/^ok: /),
  });
});

it('reports each failed check', async () => {
  writeFileSync(at('open.seed'), SEED, { mode: 0o644 });
  writeFileSync(at('other.seed'), '09'.repeat(32), { mode: 0o600 });
  writeFileSync(at('broken.json'), '{}');
  const { first: nobody } = await freePorts(1);
  const [wrong, stranger, refused] = await Promise.all([
    findings({
      ...right,
      VALIDATOR_SEED_FILE: at('open.seed'),
      VALIDATOR_DATABASE: `postgres://me:hush@127.0.0.1:${nobody}/x`,
      VALIDATOR_CHECK_POLICY: at('broken.json'),
      VALIDATOR_METAGRAPH: at('broken.json'),
      VALIDATOR_PORT: String(nobody),
      VALIDATOR_CENTRAL_URL: `${central.origin}/api`.replace('http:', 'https:'),
      VALIDATOR_AGENT_IMAGE: `127.0.0.1:${nobody}/agent`,
    }),
    findings({
      ...right,
      VALIDATOR_SEED_FILE: at('other.seed'),
      VALIDATOR_PROT: '1',
      VALIDATOR_CENTRAL_HOTKEY: hotkey,
    }),
    findings({ VALIDATOR_PORT: 'x' }),
  ]);
  expect(wrong).toMatchObject({
    key: expect.stringMatching(/^fail: .*open.seed may be read by others/),
    ledger: expect.stringMatching(/^fail: /),
    policies: expect.stringMatching(/^fail: .*broken.json/),
    metagraph: expect.stringMatching(/^fail: /),
    central: expect.stringMatching(/^unknown: /),
    'central-hotkey': expect.stringContaining('the port answers plain HTTP; the doctor sent TLS'),
    gateway: expect.stringMatching(/^warn: no validator answers.*no program listens at the port$/),
    registry: expect.stringMatching(/^fail: 127.0.0.1:\d+\/agent:latest: /),
  });
  expect(JSON.stringify(wrong)).not.toContain('hush');
  expect(stranger).toMatchObject({
    configuration: expect.stringMatching(/^warn: VALIDATOR_PROT.*did you mean VALIDATOR_PORT/),
    metagraph: expect.stringMatching(/^fail: 5\w+ is not among the 1 registered hotkeys/),
    central: expect.stringMatching(/^fail: .* rejects our signature/),
    'central-hotkey': expect.stringMatching(
      new RegExp(`^fail: .* signs with 5\\w+, VALIDATOR_CENTRAL_HOTKEY is ${hotkey}: `),
    ),
    gateway: expect.stringMatching(/^fail: another validator answers/),
  });
  expect(Object.keys(refused)).toEqual(['configuration']);
});

it('rejects a key that other users can read, at the start and with --check-config', async () => {
  writeFileSync(at('shown.seed'), SEED, { mode: 0o644 });
  const environment = { ...right, VALIDATOR_SEED_FILE: at('shown.seed') };
  const runs = [run([], environment), run(['--check-config'], environment)];
  for (const { exitCode, stderr } of await Promise.all(runs)) {
    expect(exitCode).toBe(6);
    expect(stderr).toMatch(/shown.seed may be read by others \(mode 644\): chmod 600/);
  }
});

it('exits with one line and status 1 if the next start may succeed', async () => {
  const [own, nobody] = [await freePorts(1), await freePorts(1)];
  const free = { ...right, VALIDATOR_PORT: String(own.first) };
  const taken = `127.0.0.1:${right['VALIDATOR_PORT']}`;
  const runs = [
    run([], { ...free, VALIDATOR_METRICS_LISTEN: taken }),
    run([], { ...right, VALIDATOR_DATABASE: `postgres://me:hush@127.0.0.1:${nobody.first}/x` }),
  ];
  const sentences = [/is in use: .*VALIDATOR_METRICS_LISTEN\n$/, /ECONNREFUSED.*start the server/];
  for (const [index, { exitCode, stderr, ended }] of (await Promise.all(runs)).entries()) {
    expect({ exitCode, ended }).toEqual({ exitCode: 1, ended: null });
    expect(stderr).toMatch(sentences[index] ?? '');
    expect(stderr).toMatch(/^podwright validator: .*\n$/);
  }
});

it('reports a missing policy once', async () => {
  const absent = { ...right, VALIDATOR_CHECK_POLICY: at('none.json') };
  const { exitCode, stderr } = await run(['--check-config'], absent);
  expect([exitCode, stderr]).toEqual([
    6,
    `configuration refused:\n  there is no file ${at('none.json')}\n`,
  ]);
});

it('writes an archive without secrets', async () => {
  const out = at('diag.tar.gz');
  writeFileSync(at('validator.log'), `the seed is ${SEED}\nAuthorization: hush\nthe last line\n`);
  const diag = ['diag', '--out', out, '--log', at('validator.log'), '--log', at('none.log')];
  const written = await run(diag, { ...right, VALIDATOR_CHECK_POLICY: at('broken.json') });
  const without = `podwright validator: --log: there is no file ${at('none.log')}\n`;
  expect(written).toMatchObject({ exitCode: 0, stderr: without });
  expect(statSync(out).mode & 0o777).toBe(0o600);
  const archive = gunzipSync(readFileSync(out)).toString('utf8');
  for (const words of [
    'VALIDATOR_HOME ',
    'evidence: 0 rows',
    'the last line',
    'ok       central',
  ]) {
    expect(archive).toContain(words);
  }
  expect(archive).not.toMatch(new RegExp(`hush|${SEED}`));
});
