import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { agentArguments, COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import {
  type SignedDigest,
  signUpdate,
  type UpdateManifest,
} from '#shared/updates/update-manifest.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { createReadTag } from '../../validator/updates/image-registry.ts';
import { createReleases } from '../../validator/updates/release.service.ts';
import { command, mustRun } from '../fakes/agents/real-host.ts';
import { eventually } from '../fakes/eventually.ts';
import { type ImageRegistry, startImageRegistry } from '../fakes/external/image-registry.ts';
import { freePorts } from '../fakes/free-ports.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const REPOSITORY = 'podwright/agent';
const RUN_LABEL = `io.podwright.test-run=${inject('testRun')}`;
const log = createLog({ name: 'test', level: 'silent' });
const signer = createSigner(new Uint8Array(32).fill(3));
const executorId = systemRandom.uuid();
const name = `podwright-update-test-${executorId.slice(0, 8)}`;
const podName = `${name}-pod`;
const home = mkdtempSync(join(tmpdir(), 'podwright-update-'));

let registry: ImageRegistry;
let store: EvidenceStore;
let market: HttpServer;
let origin: string;
/** Changes the validator's answer on its way to the agent. */
type Tamper = (answer: SignedDigest) => SignedDigest | Promise<SignedDigest>;
const asItIs: Tamper = (answer) => answer;
let tamper = asItIs;
const withManifest = (change: Partial<UpdateManifest>) => (answer: SignedDigest) =>
  signUpdate({ ...answer.manifest, ...change }, signer, signer.hotkey);

/** A version of the agent: an image without files, whose command is this checkout's agent or another program. */
const version = (number: number, command = [process.execPath, ...agentArguments()]) =>
  registry.publish(REPOSITORY, 'stable', [
    `ENV VERSION=${number}`,
    `CMD ${JSON.stringify(command)}`,
  ]);

beforeAll(async () => {
  registry = await startImageRegistry();
  store = await openEvidenceStore(':memory:');
  const image = `${registry.host}/${REPOSITORY}`;
  market = createHttpServer({
    log,
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: 1000,
  });
  const source = {
    image,
    tag: 'stable',
    keyId: signer.hotkey,
    firstPermille: 1_000,
    expiryMs: 60_000,
  };
  // A new server each time, so that no answer is cached.
  market.get('/digest', async () => {
    const releases = createReleases({
      store,
      clock: systemClock,
      log,
      signer,
      source,
      graceMs: 0,
      readTag: createReadTag(systemClock),
    });
    return tamper(await releases.current());
  });
  const url = `${await market.listen({ host: '127.0.0.1', port: 0 })}/digest`;
  const { first: port } = await freePorts(1);
  origin = `http://127.0.0.1:${port}`;
  const digest = await version(1);
  const environment = {
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    AGENT_EXECUTOR_ID: executorId,
    AGENT_HOME: home,
    AGENT_HOST: '127.0.0.1',
    AGENT_TLS: 'off',
    AGENT_PORT: String(port),
    AGENT_GPU: 'none',
    AGENT_LOG_LEVEL: 'warn',
    AGENT_TRUSTED_KEYS: `${signer.hotkey}=validator-control`,
    AGENT_UPDATE_URL: url,
    AGENT_UPDATE_IMAGE: image,
    AGENT_UPDATE_CONTAINER: name,
    AGENT_UPDATE_INTERVAL_S: '1',
    AGENT_UPDATE_PROBATION_S: '1',
  };
  const folders = ['/bin', '/lib', '/lib64', '/usr', '/etc', ROOT.replace(/\/$/, '')];
  const mounts = folders.flatMap((folder) => ['--volume', `${folder}:${folder}:ro`]);
  const variables = Object.entries(environment).flatMap(([key, value]) => [
    '--env',
    `${key}=${value}`,
  ]);
  const others = [
    '--volume',
    '/var/run/docker.sock:/var/run/docker.sock',
    '--volume',
    `${home}:${home}`,
  ];
  const labels = ['--label', `io.podwright.agent=${executorId}`, '--label', RUN_LABEL];
  const settings = ['--name', name, '--network', 'host', '--restart', 'always', ...labels];
  await mustRun(
    'docker',
    'run',
    '--detach',
    ...settings,
    ...mounts,
    ...others,
    ...variables,
    `${image}@${digest}`,
  );
  await startPod(`${image}@${digest}`);
}, 60_000);

/** Starts a container whose labels identify it as one of the executor's pods. */
async function startPod(image: string): Promise<void> {
  const labels = Object.entries({
    executor: executorId,
    kind: 'pod',
    managed: '1',
    pod: systemRandom.uuid(),
  });
  const flags = labels.flatMap(([key, value]) => ['--label', `io.podwright.${key}=${value}`]);
  const files = ['--network', 'none', '--volume', '/bin/busybox:/busybox:ro'];
  await mustRun(
    'docker',
    'run',
    '--detach',
    '--name',
    podName,
    '--label',
    RUN_LABEL,
    ...flags,
    ...files,
    image,
    '/busybox',
    'sleep',
    '600',
  );
}

afterAll(async () => {
  // The switcher is removed first: it would restart the other containers.
  await command('docker', 'rm', '--force', '--volumes', `${name}-switcher`);
  const { stdout } = await command('docker', 'ps', '--all', '--quiet', '--filter', `name=${name}`);
  for (const id of stdout.split('\n').filter(Boolean)) {
    await command('docker', 'rm', '--force', '--volumes', id);
  }
  await market?.close();
  await store?.destroy();
  await registry?.close();
  rmSync(home, { recursive: true, force: true });
}, 60_000);

async function status(): Promise<UpdateStatus | null> {
  const answer = await fetch(`${origin}/update-status`).catch(() => null);
  return answer?.ok === true ? UpdateStatus.parse(await answer.json()) : null;
}

const until = (what: string, holds: (found: UpdateStatus) => boolean) =>
  eventually(
    what,
    async () => {
      const found = await status();
      return found !== null && holds(found) ? found : null;
    },
    90_000,
  );

async function inspected(container: string): Promise<Record<string, unknown>> {
  const format = '{"id":"{{.Id}}","started":"{{.State.StartedAt}}","pid":{{.State.Pid}}}';
  return JSON.parse(await mustRun('docker', 'inspect', '--format', format, container));
}

/**
 * Kills the container's process as soon as it has one. The pid of a stopped container is 0, which would signal this
 * process's own group.
 */
async function kill(container: string): Promise<void> {
  const pid = await eventually(`a process of ${container}`, async () => {
    const found = await inspected(container).catch(() => null);
    return Number(found?.['pid'] ?? 0) || null;
  });
  process.kill(pid, 'SIGKILL');
}

it('the agent rolls back a version that exits, and updates to a working version despite kills of agent and switcher', async () => {
  const pod = await inspected(podName);
  const first = await until('the first digest', ({ sequence }) => sequence === 1);
  expect(first).toMatchObject({ state: 'IDLE', update_pending: false, reason: null });
  const old = await inspected(name);

  tamper = (answer) => ({ ...answer, manifest: { ...answer.manifest, notes: 'altered' } });
  const bad = await version(2, ['/usr/bin/false']);
  await until('refusal', ({ reason }) => reason === 'SIGNATURE_BAD');
  tamper = withManifest({ image: 'registry.example/agent' });
  await until('refusal', ({ reason }) => reason === 'IMAGE_OTHER');
  tamper = withManifest({ expiresAt: 1 });
  await until('refusal', ({ reason }) => reason === 'EXPIRED');
  expect(await inspected(name)).toEqual(old);

  let accepted: SignedDigest | null = null;
  tamper = (answer) => {
    accepted = answer;
    return answer;
  };
  const back = await until(
    'going back',
    (found) => found.state === 'ROLLED_BACK' && found.current_digest !== null,
  );
  expect(back).toMatchObject({
    reason: 'NEW_VERSION_ENDED',
    target_digest: bad,
    attempts: 1,
    update_pending: true,
    current_digest: first.current_digest,
  });
  expect((await inspected(name))['id']).toBe(old['id']);

  tamper = asItIs;
  const good = await version(3);
  await kill(name);
  await kill(`${name}-switcher`);
  const done = await until('the new version', ({ state }) => state === 'COMMITTED');
  expect(done).toMatchObject({ current_digest: good, sequence: 3, update_pending: false });
  expect(await inspected(`${name}-previous-3`)).toMatchObject({ id: old['id'], pid: 0 });
  await eventually('the switcher’s exit', async () => {
    return (await command('docker', 'inspect', `${name}-switcher`)).exitCode !== 0;
  });

  const replayed = accepted;
  tamper = (answer) => replayed ?? answer;
  await until('refusal', ({ reason }) => reason === 'SEQUENCE_OLD');
  expect(await inspected(podName)).toEqual(pod);
  const { stdout } = await command('docker', 'inspect', '--format', '{{.Config.Env}}', name);
  expect(stdout).toContain('VERSION=3');
  expect(stdout).not.toContain('VERSION=1');
}, 180_000);
