/** The agent's diagnosis archive, written by `doctor --archive` and by `diag` as processes. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { agentArguments, COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import { gatewayPaths } from '../access/ssh/gateway-files.ts';
import { placeOfRepository } from '../backups/run-operation.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { podObjectLabels } from '../containers/engine/labels.ts';
import { ensureBuiltinImage } from '../containers/images/builtin-image.ts';
import { placeOfLogin } from '../containers/images/registry-logins.ts';
import { openDatabase, STORE_FILE } from '../database/database.ts';
import { openSecretKey } from '../host/secret-key.ts';
import { placeOfSecret } from '../pods/pod-secrets.ts';

const LIMITS = { timeoutMs: 60_000, maxOutputBytes: 1_000_000 };
const POD = systemRandom.uuid();
const EXECUTOR = systemRandom.uuid();
const SECRETS = {
  environment: 'hush of the pod',
  notebook: 'hush-of-the-notebook',
  login: 'hush of the registry',
  secret: 'hush of a secret file',
  repository: 'hush of restic',
  header: 'hush-of-a-caller',
  address: 'hush-of-an-address',
};

const folder = mkdtempSync(join(tmpdir(), 'podwright-diag-'));
const home = join(folder, 'home');
const log = join(folder, 'agent.log');
const hostKey = createSshKeyPair(systemRandom, 'host').privateKeyPem;
let ownKey: Uint8Array;
beforeAll(fillHome);
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Creates the home of an agent with one pod. Each secret is stored where the agent stores it, and a log contains all
 * secrets.
 */
function fillHome(): void {
  const database = openDatabase(join(home, STORE_FILE));
  ownKey = openSecretKey(home, systemRandom);
  const sealing = createSealing({ key: ownKey, random: systemRandom });
  const spec = { ...podSpec({ command: ['sleep', '1'] }), environment: { A: SECRETS.environment } };
  const put = (table: string, row: Record<string, string | number | null>) => {
    const names = Object.keys(row);
    const places = names.map((name) => `:${name}`).join(', ');
    database.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places})`).run(row);
  };
  put('pods', {
    id: POD,
    desired: 'running',
    phase: 'running',
    phase_since_ms: 1,
    generation: 1,
    observed_generation: 1,
    spec_json: JSON.stringify(spec),
    spec_hash: 'x',
    reason: null,
    message: `said ${SECRETS.environment}`,
    attempts: 0,
    restart_count: 0,
    port_conflicts: 0,
    reboots_requested: 0,
    reboots_done: 0,
    reboot_target: 0,
    reboot_from_ms: 0,
    conditions_json: '[]',
    created_ms: 1,
    updated_ms: 1,
  });
  put('pod_secrets', {
    pod_id: POD,
    name: 'token',
    sealed: sealing.seal(JSON.stringify(SECRETS.secret), placeOfSecret(POD, 'token')),
  });
  put('pod_registry_auth', {
    pod_id: POD,
    generation: 1,
    sealed: sealing.seal(JSON.stringify({ password: SECRETS.login }), placeOfLogin(POD, 1)),
  });
  put('pod_notebooks', {
    pod_id: POD,
    request: 1,
    internal_port: 8888,
    token: SECRETS.notebook,
    status: 'running',
    message: '',
    attempts: 0,
    next_try_ms: 0,
    deadline_ms: 0,
    since_ms: 0,
  });
  const repository = JSON.stringify({ environment: { RESTIC_PASSWORD: SECRETS.repository } });
  put('operations', {
    id: 'o',
    pod_id: POD,
    kind: 'backup',
    stage: 'uploading',
    fingerprint: 'x',
    request_json: '{}',
    sealed_repository: sealing.seal(repository, placeOfRepository('o')),
    progress_json: '{}',
    attempts: 0,
    cancel_requested: 0,
    log_json: '[]',
    started_ms: 1,
    heartbeat_ms: 1,
  });
  database.close();
  const { snapshot, folder: ssh } = gatewayPaths(home);
  mkdirSync(ssh, { recursive: true });
  const pod = { id: POD, port: 1, container_id: null, user: 'root', host_key: hostKey };
  const pods = [{ ...pod, authorized_keys: [], environment_names: [], sftp: false }];
  writeFileSync(snapshot, JSON.stringify({ pods }));
  const lines = [
    ...Object.values(SECRETS)
      .slice(0, 4)
      .map((secret) => JSON.stringify({ msg: `oops ${secret}` })),
    `Authorization: Bearer ${SECRETS.header}`,
    `{"x-api-key":"${SECRETS.header}"}`,
    `asked https://me:${SECRETS.address}@registry.example/v2/`,
    JSON.stringify({ msg: hostKey }),
    hostKey,
    Buffer.from(ownKey).toString('hex'),
    '{"level":30,"msg":"the last line"}',
  ];
  writeFileSync(log, `${lines.join('\n')}\n`);
}

async function archive(
  name: string,
  command: readonly [name: string, option: string],
  environment: Record<string, string>,
) {
  const out = join(folder, name);
  const run = await runCommand(process.execPath, agentArguments(...command, out, '--log', log), {
    ...LIMITS,
    env: {
      PATH: process.env['PATH'] ?? '',
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      AGENT_HOME: home,
      AGENT_EXECUTOR_ID: EXECUTOR,
      AGENT_GPU: 'none',
      AGENT_PORT: '1',
      AGENT_UPDATE_URL: `https://me:${SECRETS.address}@central.example/digest`,
      ...environment,
    },
  });
  // After 5 s, as on a busy computer, a line reports the progress.
  expect([run.exitCode, run.stderr.replace(/^… collecting .*\n/gm, '')]).toEqual([0, '']);
  expect(run.stdout).toMatch(/^ {2}doctor.txt, \d+ characters$/m);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  return { out, files: filesIn(gunzipSync(readFileSync(out))) };
}

/** Returns names and contents of a tar archive with short names. */
function filesIn(archive: Buffer): Record<string, string> {
  const files: Record<string, string> = {};
  for (let at = 0; at + 512 <= archive.length && archive[at] !== 0; ) {
    const name = archive.toString('utf8', at, at + 100).replace(/\0.*$/, '');
    const size = Number.parseInt(archive.toString('utf8', at + 124, at + 135), 8);
    files[name] = archive.toString('utf8', at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}

it('writes every part and no secret while the agent is stopped', async () => {
  const engine = createDockerodeEngine({
    socketPath: '/var/run/docker.sock',
    clock: systemClock,
  });
  const labels = { ...podObjectLabels(EXECUTOR, POD), 'io.podwright.test-run': inject('testRun') };
  const image = await ensureBuiltinImage(engine, '/bin/busybox');
  const container = await engine.createContainer({
    name: `archive-${POD}`,
    image,
    labels,
    entrypoint: [],
    command: [],
    environment: {},
    network: null,
    ports: [],
    gpuUuids: [],
    limits: { cpuCores: 1, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 64 },
    stopGraceSeconds: 1,
  });
  const { out, files } = await archive('down.tar.gz', ['diag', '--out'], {}).finally(() =>
    engine.removeContainer(container),
  );
  expect(files['versions.txt']).toContain('podwright ');
  expect(files['configuration.txt']).toMatch(/^AGENT_HOME +environment +\//m);
  expect(files['configuration.txt']).toContain(
    'AGENT_UPDATE_IMAGE, AGENT_UPDATE_CONTAINER: not set',
  );
  expect(files['doctor.txt']).toMatch(/^ok +docker /m);
  expect(files['store.txt']).toContain(`"id":"${POD}","phase":"running"`);
  expect(files['engine.json']).toContain('"storageDriver"');
  expect(files['firewall.txt']).toMatch(/^-P FORWARD /m);
  expect(JSON.parse(files['containers.json'] ?? '')).toMatchObject([{ id: container, labels }]);
  expect(files['metrics.txt']).toMatch(/^not available: /);
  expect(files['log-1-agent.log.txt']).toContain('"msg":"the last line"');
  expect(Object.keys(files)).toEqual(expect.arrayContaining(['journal.txt', 'units.txt']));
  const whole = Object.values(files).join('\n');
  expect(whole).not.toMatch(/hush/);
  for (const line of hostKey.split('\n').slice(1, -2)) expect(whole).not.toContain(line);
  expect(whole).not.toContain(Buffer.from(ownKey).toString('hex'));
  const again = await runCommand(process.execPath, agentArguments('diag', '--out', out), {
    ...LIMITS,
    env: { PATH: process.env['PATH'] ?? '', AGENT_HOME: home },
  });
  expect(again).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('already') });
});

it('writes the archive without an engine, and leaves out parts with secrets if the store cannot be read', async () => {
  writeFileSync(join(home, 'secret.key'), 'another key', { mode: 0o600 });
  const { files } = await archive('away.tar.gz', ['doctor', '--archive'], {
    AGENT_DOCKER_SOCKET: join(folder, 'none.sock'),
  });
  expect(files['engine.json']).toMatch(/^not available: .*ENOENT/);
  expect(files['containers.json']).toMatch(/^not available: /);
  for (const name of ['store.txt', 'journal.txt', 'log-1-agent.log.txt']) {
    expect(files[name]).toMatch(/^left out, /);
  }
  expect(Object.values(files).join('\n')).not.toMatch(/hush/);
});
