/**
 * A complete update of the agent under systemd, with the image that `npm run image` builds. Installs this checkout.
 * Builds, pushes and signs a release with a higher version. Expects the agent to update to that version while a pod
 * runs.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VersionInfo } from '#shared/api/agent/inventory.ts';
import { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import { UPDATE_DIGEST_PATH } from '#shared/updates/update-manifest.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import { createReadTag } from '../../validator/updates/image-registry.ts';
import { registerReleaseRoutes } from '../../validator/updates/release.routes.ts';
import { createReleases } from '../../validator/updates/release.service.ts';
import { type InstalledAgent, installAgent } from '../fakes/agents/installed-agent.ts';
import { mustRun } from '../fakes/agents/real-host.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';
import { eventually } from '../fakes/eventually.ts';
import { startImageRegistry } from '../fakes/external/image-registry.ts';
import { type SystemdHost, startSystemdHost } from '../fakes/external/systemd-host.ts';
import { freePorts } from '../fakes/free-ports.ts';
import { figureAtMost, type Row } from '../measure/row.ts';
import { removeLabelled } from '../run/leftovers.ts';
import { buildNextRelease, NEXT_VERSION } from './next-release.ts';

const [REPOSITORY, TAG] = ['podwright/agent', 'stable'];
const PROBATION_S = 5;
const COMMITTED_WITHIN_MS = 600_000;
const LOOK_MS = 100;
const REMOVE = 'sh /opt/podwright/current/systemd/uninstall.sh --purge --pods remove';
const MB = 1_000_000;

/** Runs the update. Needs root and about 3 GB of disk and memory. */
export async function agentUpdate(print: (line: string) => void): Promise<Row[]> {
  const scene = await openScene();
  try {
    return await drill(scene, print);
  } finally {
    await scene.close();
  }
}

type Scene = Awaited<ReturnType<typeof openScene>>;

/** Starts a registry, a host without an agent, and a server that answers agents as a validator does. */
async function openScene() {
  const registry = await startImageRegistry();
  const host = await startSystemdHost();
  const store = await openEvidenceStore(':memory:');
  const log = createLog({ name: 'drill', level: 'silent' });
  const market = createHttpServer({
    log,
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: 1_000,
  });
  const home = mkdtempSync(join(tmpdir(), 'podwright-drill-'));
  const { first: port } = await freePorts(1);
  return {
    registry,
    host,
    store,
    log,
    market,
    home,
    place: { host: host.machine, port },
    image: `${registry.host}/${REPOSITORY}`,
    async close() {
      await market.close();
      await store.destroy();
      await host.run(REMOVE);
      await host.remove();
      await registry.close();
      rmSync(home, { recursive: true });
    },
  };
}

async function drill(scene: Scene, print: (line: string) => void): Promise<Row[]> {
  const { host, image } = scene;
  const agent = await installAgent(host, () => variablesFor(scene));
  process.once('exit', () => removeLabelled(`io.podwright.executor=${agent.executorId}`));
  print(`installed ${VERSION}: ${await current(host)}`);
  const session = await openSession(host, agent, scene.home);
  const before = await podState(agent);
  const gateway = await gatewayPid(host);
  const { build, push } = await publishRelease(scene, agent);
  print(`built ${image}:${TAG} (${NEXT_VERSION}), digest ${push.value}`);

  const { update, awayMs, states } = await watchUpdate(agent, push.value);
  print(`reported states: ${states.join(' ')}`);
  const status = update.value;
  print(JSON.stringify(status));
  const again = await host.mustRun('sh /opt/podwright/current/systemd/install.sh --probation 0');
  print(`output of the new release’s install.sh: ${again.trim().replaceAll('\n', '; ')}`);
  const isKept = (await gatewayPid(host)) === gateway && (await echoes(session));
  session.kill();
  const follow = await timed(() => followed(host, push.value));
  const release = (await current(host)).replace('releases/', '').replace('-', ':');
  const version = VersionInfo.parse(await getJson(agent, '/version'));
  const arePodsKept = before === (await podState(agent));
  const removal = await timed(() => host.mustRun(REMOVE));
  return [
    figureAtMost('build of the image', build.seconds, 's', 300),
    figureAtMost('its size', await imageMb(`${image}:${TAG}`), 'MB', 1_000),
    figureAtMost('its push', push.seconds, 's', 120),
    figureAtMost('from the signed digest to COMMITTED', update.seconds, 's', 180),
    figureAtMost('longest time without an answer of the agent', awayMs / 1_000, 's', 60),
    wrongs('pods were changed', arePodsKept),
    wrongs('the agent reports a wrong version', version.version === NEXT_VERSION),
    wrongs('a wrong release runs', release === push.value),
    wrongs('update-status is wrong', isTrueOf(status, push.value)),
    wrongs('the SSH session broke', isKept),
    figureAtMost('from the last session to the update of the gateway', follow.seconds, 's', 30),
    figureAtMost('removal of the services and their pods', removal.seconds, 's', 60),
    figureAtMost('containers left over', (await containersOf(agent)).length, 'containers', 0),
  ];
}

const variablesFor = ({ place, image }: Scene) => [
  `AGENT_UPDATE_URL=http://${place.host}:${place.port}${UPDATE_DIGEST_PATH}`,
  `AGENT_UPDATE_IMAGE=${image}`,
  'AGENT_UPDATE_INTERVAL_S=1',
  `AGENT_UPDATE_PROBATION_S=${PROBATION_S}`,
];

/** Builds the next release, pushes it, and serves its signed digest. */
async function publishRelease(scene: Scene, { signer }: InstalledAgent) {
  const { registry, store, log, market, image } = scene;
  const build = await timed(() => buildNextRelease(`${image}:${TAG}`));
  const push = await timed(() => registry.push(REPOSITORY, TAG));
  const source = { image, tag: TAG, keyId: signer.hotkey };
  const releases = createReleases({
    store,
    clock: systemClock,
    log,
    signer,
    graceMs: 0,
    source: { ...source, firstPermille: 1_000, expiryMs: 3_600_000 },
    readTag: createReadTag(systemClock),
  });
  registerReleaseRoutes(market, releases);
  await market.listen(scene.place);
  return { build, push };
}

/** Waits until the agent runs the release. Returns the duration, the longest outage and the reported states. */
async function watchUpdate(agent: InstalledAgent, digest: string) {
  const leave = new AbortController();
  const away = watchAway(agent, leave.signal);
  const states: string[] = [];
  try {
    const update = await timed(() => committed(agent, digest, states));
    leave.abort();
    return { update, awayMs: await away, states };
  } finally {
    leave.abort();
  }
}

async function timed<T>(work: () => Promise<T>): Promise<{ value: T; seconds: number }> {
  const startMs = systemClock.monotonicMs();
  const value = await work();
  return { value, seconds: (systemClock.monotonicMs() - startMs) / 1_000 };
}

async function imageMb(reference: string): Promise<number> {
  return Number(await mustRun('docker', 'image', 'inspect', '-f', '{{.Size}}', reference)) / MB;
}

const current = async (host: SystemdHost) =>
  (await host.mustRun('readlink /opt/podwright/current')).trim();

/** Opens a session in a separate pod, which answers line by line. */
async function openSession(
  host: SystemdHost,
  { client }: InstalledAgent,
  home: string,
): Promise<ChildProcess> {
  const id = systemRandom.uuid();
  const pair = createSshKeyPair(systemRandom, 'drill');
  const file = join(home, 'key');
  writeFileSync(file, pair.privateKeyPem, { mode: 0o600 });
  await client.putPod(
    id,
    podSpec({ internal_ports: [22, 8000], ssh_public_keys: [pair.publicKey] }),
  );
  const port = await eventually('a pod', async () => {
    const { ssh } = await client.getPod(id);
    return ssh?.ready === true && ssh.port;
  });
  const settings = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
  const options = ['-F', '/dev/null', ...settings.flatMap((setting) => ['-o', setting])];
  const place = ['-i', file, '-p', String(port), `root@${host.address}`];
  const session = spawn('ssh', [...options, ...place, 'cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  if (!(await echoes(session))) throw new Error('no session');
  return session;
}

/** Returns true if a line sent in the session is echoed. */
async function echoes({ stdin, stdout, exitCode }: ChildProcess): Promise<boolean> {
  if (exitCode !== null) return false;
  const answer = new Promise<boolean>((resolve) => {
    stdout?.once('data', () => resolve(true));
    stdout?.once('end', () => resolve(false));
  });
  stdin?.write('still here\n');
  return answer;
}

const gatewayPid = async (host: SystemdHost) =>
  (await host.mustRun('systemctl show -p MainPID --value podwright-ssh-gateway')).trim();

/** Resolves with true when the SSH gateway runs the release with this digest. */
function followed(host: SystemdHost, digest: string): Promise<boolean> {
  return eventually('the new gateway', async () => {
    const { stdout } = await host.run(`readlink /proc/${await gatewayPid(host)}/exe`);
    return stdout.includes(digest.replace(':', '-'));
  });
}

/** Ids of all containers of this agent, in any state. */
async function containersOf({ executorId }: InstalledAgent): Promise<string[]> {
  const filter = `label=io.podwright.executor=${executorId}`;
  const ids = await mustRun('docker', 'ps', '-aq', '--filter', filter);
  return ids.split('\n').filter((id) => id !== '');
}

const podState = async (agent: InstalledAgent) =>
  mustRun(
    'docker',
    'inspect',
    '--format',
    '{{.Id}} {{json .State}}',
    ...(await containersOf(agent)),
  );

async function getJson({ send }: InstalledAgent, path: string): Promise<unknown> {
  return (await send({ method: 'GET', path, signal: systemClock.deadline(2_000) })).json();
}

/** Measures the longest time during which the agent did not respond. */
async function watchAway(agent: InstalledAgent, leave: AbortSignal): Promise<number> {
  let [lastMs, longestMs] = [systemClock.monotonicMs(), 0];
  while (!leave.aborted) {
    const answers = await getJson(agent, '/version').then(
      () => true,
      () => false,
    );
    const nowMs = systemClock.monotonicMs();
    if (answers) {
      longestMs = Math.max(longestMs, nowMs - lastMs);
      lastMs = nowMs;
    }
    await systemClock.sleep(LOOK_MS);
  }
  return longestMs;
}

function committed(agent: InstalledAgent, digest: string, states: string[]): Promise<UpdateStatus> {
  return eventually(
    'COMMITTED',
    async () => {
      const found = await getJson(agent, '/update-status').catch(() => null);
      if (found === null) return null;
      const status = UpdateStatus.parse(found);
      const seen = [status.state, status.reason].filter((word) => word !== null).join(':');
      if (states.at(-1) !== seen) states.push(seen);
      if (status.state === 'ROLLED_BACK') throw new Error(JSON.stringify(status));
      return status.state === 'COMMITTED' && status.current_digest === digest && status;
    },
    COMMITTED_WITHIN_MS,
  );
}

function isTrueOf(status: UpdateStatus, digest: string): boolean {
  const { running_version: version, current_digest, target_digest } = status;
  const isNamed = current_digest === digest && target_digest === digest && status.sequence > 0;
  return isNamed && version === NEXT_VERSION && status.update_pending === false;
}

const wrongs = (name: string, holds: boolean): Row => figureAtMost(name, holds ? 0 : 1, 'times', 0);
