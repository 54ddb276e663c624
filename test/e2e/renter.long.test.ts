/** Operations of a renter on a pod over HTTP, through the program of `npm start`, on the real Docker engine. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { type ContainerState, LABELS } from '../../agent/containers/engine/engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';
import { payBack, payIn, signUpWithNothing } from './newcomer.ts';

const WITHIN_MS = 60_000;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const home = temporaryHome();
let market: MarketplaceProcess;

beforeAll(async () => {
  market = await startMarketplaceProcess(home, await freePortFlags(), {
    CENTRAL_METER_TICK_SECONDS: '1',
  });
});

afterAll(async () => {
  const executorIds = market.demo().executors.map((executor) => executor.id);
  await market.end();
  for (const executor of executorIds) {
    const labels = { [LABELS.executor]: executor };
    for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
    for (const { id } of await engine.listNetworks(labels)) await engine.removeNetwork(id);
    for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
  }
  removeHome(home);
});

type PodRow = {
  id: string;
  status: string;
  ssh_connect_cmd: string | null;
  ports_mapping: Record<string, number>;
  template_id: string;
  template: { environment: Record<string, string>; docker_image: string };
  reason_code: string | null;
  message: string | null;
};

async function call(method: string, path: string, body?: object) {
  const answer = await api(market.demo(), method, path, body);
  expect([method, path, answer.status, answer.body]).toEqual([method, path, 200, answer.body]);
  return answer.body;
}

async function untilRunning(id: string): Promise<PodRow> {
  const read = async () => {
    const pod = (await call('GET', `/pods/${id}`)) as PodRow;
    return pod.status === 'RUNNING' && pod.ssh_connect_cmd !== null ? pod : false;
  };
  return eventually(`pod ${id} running`, read, WITHIN_MS);
}

const containersOf = (podId: string) => engine.listContainers({ [LABELS.pod]: podId });

/** The pod's only container; an edit removes the old one soon afterwards. */
async function containerOf(podId: string): Promise<ContainerState> {
  return eventually('one container', async () => {
    const [only, ...others] = await containersOf(podId);
    return others.length === 0 && only?.status === 'running' && only;
  });
}

/** Logs in with `ssh_connect_cmd` as clients do. */
function logIn({ ssh_connect_cmd }: PodRow, command: string): string {
  const [program = '', ...args] = (ssh_connect_cmd ?? '').split(' ');
  const settings = [
    `IdentityFile=${market.demo().ssh.private_key_file}`,
    ...['IdentitiesOnly=yes', 'BatchMode=yes', 'StrictHostKeyChecking=no', 'LogLevel=ERROR'],
    'UserKnownHostsFile=/dev/null',
  ];
  const options = ['-F', '/dev/null', ...settings.flatMap((setting) => ['-o', setting])];
  return execFileSync(program, [...options, ...args, command], { encoding: 'utf8' });
}

async function pageOf(pod: PodRow): Promise<number> {
  return (await fetch(`http://127.0.0.1:${pod.ports_mapping['8000']}/`)).status;
}

async function lastEvent(id: string) {
  const events = (await call('GET', `/pods/${id}/events`)) as object[];
  return events.at(-1);
}

it('changes a pod in place, and restores it when the change fails', async () => {
  const [node] = (await call('GET', '/executors')) as { id: string }[];
  const body = { pod_name: 'edited', template_id: market.demo().templates[0]?.id };
  const rented = (await call('POST', `/executors/${node?.id}/rent`, body)) as PodRow;
  const { id } = rented;
  const first = await untilRunning(id);
  const before = await containerOf(id);
  logIn(first, 'echo mine >/workspace/data; echo home >/root/data; touch /lost');

  // New variables: the agent creates another container at the same address, with the same keys.
  const template = (await call('PUT', `/pods/${id}`, { environment: { COLOUR: 'green' } })) as {
    id: string;
  };
  expect(((await call('GET', `/pods/${id}`)) as PodRow).status).toBe('REBOOT_PENDING');
  const edited = await untilRunning(id);
  expect(edited).toMatchObject({
    ports_mapping: first.ports_mapping,
    ssh_connect_cmd: first.ssh_connect_cmd,
    template_id: template.id,
    template: { environment: { COLOUR: 'green' } },
  });
  const after = await containerOf(id);
  expect(after.id).not.toBe(before.id);
  expect(logIn(edited, 'echo "$COLOUR"; touch /kept')).toBe('green\n');
  // Files in the volumes are retained; files outside them are removed with the old container.
  const kept = 'cat /workspace/data /root/data; ls -d /lost /kept 2>/dev/null || true';
  expect(logIn(edited, kept)).toBe('mine\nhome\n/kept\n');
  expect(await pageOf(edited)).toBe(200);
  expect(await lastEvent(id)).toMatchObject({ sub_event_type: 'pod-reboot.success' });

  // An image that does not exist: the agent does not even stop the container.
  await call('PUT', `/pods/${id}`, { docker_image: 'podwright.local/missing' });
  const unchanged = await untilRunning(id);
  expect(unchanged).toMatchObject({
    reason_code: 'image_pull_failed',
    ports_mapping: first.ports_mapping,
    template: { docker_image: 'podwright.local/base', environment: { COLOUR: 'green' } },
  });
  expect(await containerOf(id)).toMatchObject({ id: after.id, startedMs: after.startedMs });
  expect(await lastEvent(id)).toMatchObject({
    sub_event_type: 'pod-reboot.failed',
    reason: 'image_pull_failed',
  });

  // A program that exits at once: the agent restores the old container, with its files.
  const image = { docker_image: 'podwright.local/base', docker_image_tag: '1' };
  await call('PUT', `/pods/${id}`, { ...image, entrypoint: "/bin/sh -c 'exit 3'" });
  const back = await untilRunning(id);
  expect(back).toMatchObject({ reason_code: 'start_failed', ports_mapping: first.ports_mapping });
  expect(back.message).toContain('ended with exit code 3');
  expect((await containerOf(id)).id).toBe(after.id);
  expect(logIn(back, 'echo "$COLOUR"; ls /kept')).toBe('green\n/kept\n');
  expect(await pageOf(back)).toBe(200);
  expect(await lastEvent(id)).toMatchObject({
    sub_event_type: 'pod-reboot.failed',
    reason: 'start_failed',
    to_status: 'RUNNING',
  });

  // Switches back to the template with which the pod was rented.
  await call('PUT', `/pods/${id}/switch-template`, { template_id: body.template_id });
  const switched = await untilRunning(id);
  expect(switched).toMatchObject({
    template_id: body.template_id,
    reason_code: null,
    ports_mapping: first.ports_mapping,
  });
  expect(logIn(switched, 'echo "[$COLOUR]"; cat /workspace/data /root/data')).toBe(
    '[]\nmine\nhome\n',
  );

  await call('DELETE', `/pods/${id}`);
  const gone = async () => (await containersOf(id)).length === 0;
  await eventually('containers gone', gone, WITHIN_MS);
  const volumesGone = async () => (await engine.listVolumes({ [LABELS.pod]: id })).length === 0;
  await eventually('volumes gone', volumesGone, WITHIN_MS);
}, 180_000);

/** The largest file of the marketplace's backups. */
function largestPack(): string {
  const folder = join(home, 'backups');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.split('/').includes('data'))
    .map((path) => join(folder, path))
    .filter((path) => statSync(path).isFile());
  return files.toSorted((a, b) => statSync(b).size - statSync(a).size)[0] ?? '';
}

async function twoFreeNodes(): Promise<{ id: string }[]> {
  return eventually('two free nodes', async () => {
    const free = (await call('GET', '/executors')) as { id: string }[];
    return free.length === 2 && free;
  });
}

/** Waits until a log of a backup or restore has a final status. */
function ended(what: string, read: () => Promise<unknown>) {
  return eventually(
    what,
    async () => {
      const log = (await read()) as { status: string } | undefined;
      return log !== undefined && !['PENDING', 'IN_PROGRESS'].includes(log.status) && log;
    },
    WITHIN_MS,
  );
}

/** Waits for the end of the pod's last restore. */
function restored(id: string) {
  return ended('the restore', async () => {
    const { items } = (await call('GET', `/pods/${id}/restore-logs`)) as { items: object[] };
    return items[0];
  });
}

it('backs up the volume, verifies and restores it, also on the other node', async () => {
  const template = { template_id: market.demo().templates[0]?.id };
  const nodes = await twoFreeNodes();
  const rent = async (at: number, more: object = {}) => {
    const body = { pod_name: 'kept', ...template, ...more };
    return ((await call('POST', `/executors/${nodes[at]?.id}/rent`, body)) as PodRow).id;
  };
  const id = await rent(0);
  const pod = await untilRunning(id);
  logIn(pod, 'echo first > /workspace/kept; head -c 3000000 /dev/urandom > /workspace/large');
  const sum = logIn(pod, 'sha256sum /workspace/large');
  const { backup_log_id: backup } = (await call('POST', `/pods/${id}/backup`, {})) as {
    backup_log_id: string;
  };
  expect(await ended('the backup', () => call('GET', `/backup-logs/${backup}`))).toMatchObject({
    status: 'COMPLETED',
    quality: 'full',
  });
  const verified = async () => {
    await call('POST', `/backup-logs/${backup}/verify`);
    return eventually(
      'the drill',
      async () => {
        const log = (await call('GET', `/backup-logs/${backup}`)) as { verify_status: string };
        return !['PENDING', 'IN_PROGRESS'].includes(log.verify_status) && log;
      },
      WITHIN_MS,
    );
  };
  const passed = { verify_status: 'PASSED', verify_error: null, verified_files: 2 };
  expect(await verified()).toMatchObject(passed);
  const pack = largestPack();
  renameSync(pack, `${pack}.gone`);
  expect(await verified()).toMatchObject({
    verify_status: 'FAILED',
    verify_error_code: 'RepositoryCorrupt',
    verify_error: expect.stringContaining('does not exist'),
  });
  renameSync(`${pack}.gone`, pack);
  const conflicting = { backup_id: backup, restore_path: '/workspace', mode: 'new_only' };
  const refused = await api(market.demo(), 'POST', `/pods/${id}/restore`, conflicting);
  expect(refused).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } });

  logIn(pod, 'echo second > /workspace/kept; rm /workspace/large');
  const request = { backup_id: backup, restore_path: '/workspace' };
  await call('POST', `/pods/${id}/restore`, request);
  expect(await restored(id)).toMatchObject({ status: 'COMPLETED', restore_mode: 'LIVE' });
  const again = await untilRunning(id);
  expect(again.ports_mapping).toEqual(pod.ports_mapping);
  expect(logIn(again, 'cat /workspace/kept; sha256sum /workspace/large')).toBe(`first\n${sum}`);

  const other = await rent(1, { backup_log_id: backup, restore_path: '/workspace' });
  expect(await restored(other)).toMatchObject({ status: 'COMPLETED', restore_mode: 'STARTUP' });
  const moved = await untilRunning(other);
  expect(logIn(moved, 'cat /workspace/kept; sha256sum /workspace/large')).toBe(`first\n${sum}`);
  const events = (await call('GET', `/pods/${other}/events`)) as { detail: string | null }[];
  const first = events.findIndex(({ detail }) => detail === 'restoring');
  expect(
    events.slice(first).map((event) => 'sub_event_type' in event && event.sub_event_type),
  ).toEqual(['pod-lifecycle.status', 'restore.success', 'pod-create.success']);
  for (const each of [id, other]) await call('DELETE', `/pods/${each}`);
}, 240_000);

it('backs up /root of a pod without volumes and restores it, also on the other node', async () => {
  const image = { docker_image: 'podwright.local/base', docker_image_tag: '1' };
  const own = { name: 'no volumes', ...image, volumes: [] };
  const { id: template_id } = (await call('POST', '/templates', own)) as { id: string };
  const body = { pod_name: 'bare', template_id };
  const rented = (await twoFreeNodes()).map(async ({ id }) =>
    untilRunning(((await call('POST', `/executors/${id}/rent`, body)) as PodRow).id),
  );
  const [pod, other] = (await Promise.all(rented)) as [PodRow, PodRow];
  logIn(pod, 'mkdir -p /root/work && cd /root/work && echo notes > notes && echo model > model');
  const schedule = { pod_id: pod.id, backup_frequency_hours: 24, retention_days: 1 };
  await call('POST', '/backup-configs', { ...schedule, backup_path: '/root' });
  const { backup_log_id: backup_id } = (await call('POST', `/pods/${pod.id}/backup`, {})) as {
    backup_log_id: string;
  };
  expect(await ended('the backup', () => call('GET', `/backup-logs/${backup_id}`))).toMatchObject({
    status: 'COMPLETED',
    quality: 'full',
    backup_path: '/root',
    changed_files: [],
    changed_files_total: 0,
  });
  logIn(pod, 'rm /root/work/notes; echo later > /root/later');
  for (const { id } of [pod, other]) {
    await call('POST', `/pods/${id}/restore`, { backup_id, restore_path: '/root' });
    expect(await restored(id)).toMatchObject({ status: 'COMPLETED', restore_path: '/root' });
    const files = logIn(await untilRunning(id), 'cd /root && cat work/notes work/model; ls');
    expect(files).toBe('notes\nmodel\nwork\n');
  }
  for (const { id } of [pod, other]) await call('DELETE', `/pods/${id}`);
}, 240_000);

it('retains a volume after its pod, and moves it to a pod on the other node', async () => {
  const nodes = await eventually('two free nodes', async () => {
    const free = (await call('GET', '/executors')) as { id: string }[];
    return free.length === 2 && free;
  });
  const { id: volumeId } = (await call('POST', '/volumes', { name: 'lasting' })) as { id: string };
  const rent = async (at: number) => {
    const template = { template_id: market.demo().templates[0]?.id };
    const body = { pod_name: 'with a volume', volume_id: volumeId, ...template };
    return ((await call('POST', `/executors/${nodes[at]?.id}/rent`, body)) as PodRow).id;
  };
  const volume = () => call('GET', `/volumes/${volumeId}`) as Promise<{ status: string }>;
  const first = await rent(0);
  const pod = await untilRunning(first);
  logIn(pod, 'echo mine > /mnt/kept; chown 7:8 /mnt/kept; ln -s /etc/shadow /mnt/out');
  await call('DELETE', `/pods/${first}`);
  const isSaved = async () => (await volume()).status === 'available';
  await eventually('the volume is saved', isSaved, WITHIN_MS);
  expect(await volume()).toMatchObject({ last_saved_at: expect.any(String), executor_id: null });
  const lasting = { [LABELS.volume]: volumeId };
  const isDropped = async () => (await engine.listVolumes(lasting)).length === 0;
  await eventually('the first node has dropped it', isDropped, WITHIN_MS);

  const second = await rent(1);
  const moved = await untilRunning(second);
  expect(moved).toMatchObject({ volume: { id: volumeId, status: 'attached' } });
  const seen = logIn(moved, 'cat /mnt/kept; stat -c %u:%g /mnt/kept; readlink /mnt/out');
  expect(seen).toBe('mine\n7:8\n/etc/shadow\n');
  await call('DELETE', `/pods/${second}`);
  const isFree = async () => (await volume()).status !== 'attached';
  await eventually('the volume is free', isFree, WITHIN_MS);
  await call('DELETE', `/volumes/${volumeId}`);
  await eventually('the second node has dropped it', isDropped, WITHIN_MS);
}, 240_000);

type Money = { balance: number; held: number; available: number; burn_per_hour: number };
type LedgerLine = { amount_usd: number; balance_usd: number; cause_type: string };

const micro = (usd: number) => Math.round(usd * 1_000_000);

it('stops a pod when its funds are used up, and starts it with its data after a top-up', async () => {
  const renter = await signUpWithNothing(market, 'poor@example.com');
  const callAsRenter = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const answer = await renter.call(method, path, body);
    expect([method, path, answer.status, answer.body]).toEqual([method, path, 200, answer.body]);
    return answer.body as T;
  };
  const me = () => callAsRenter<Money>('GET', '/users/me');
  const until = async (id: string, status: string) =>
    eventually(
      `pod ${id} ${status}`,
      async () => {
        const pod = await callAsRenter<PodRow>('GET', `/pods/${id}`);
        return pod.status === status && pod;
      },
      WITHIN_MS,
    );
  expect((await me()).balance).toBe(0);
  payIn(market, renter, 100);
  const publicKey = readFileSync(`${market.demo().ssh.private_key_file}.pub`, 'utf8').trim();
  await callAsRenter('POST', '/ssh-keys', { name: 'mine', public_key: publicKey });
  const [node] = await callAsRenter<{ id: string }[]>('GET', '/executors');
  const request = { pod_name: 'poor', template_id: market.demo().templates[0]?.id };
  const { id } = await callAsRenter<PodRow>('POST', `/executors/${node?.id}/rent`, request);
  logIn(await until(id, 'RUNNING'), 'echo mine > /workspace/kept');
  const schedule = { pod_id: id, backup_frequency_hours: 24, retention_days: 1 };
  await callAsRenter('POST', '/backup-configs', { ...schedule, backup_path: '/workspace' });

  // The first settlement releases the hold, so for some seconds the payer's balance is higher by the hold minus the
  // charge.
  const free = await eventually('the hold ended', async () => {
    const money = await me();
    return money.held === 0 && money;
  });
  const refundUusd = micro(free.available - (free.burn_per_hour * 4) / 3_600);
  await payBack(market, renter, refundUusd);
  await until(id, 'STOPPED');
  expect(await me()).toMatchObject({ balance: 0, burn_per_hour: 0 });
  const isStopped = async () => (await containersOf(id)).every(({ status }) => status === 'exited');
  await eventually('the container has stopped', isStopped, WITHIN_MS);
  expect(await engine.listVolumes({ [LABELS.pod]: id })).not.toEqual([]);
  const saved = async () => {
    const { items } = await callAsRenter<{ items: { status: string }[] }>(
      'GET',
      `/backup-logs/pod/${id}`,
    );
    return items.some(({ status }) => status === 'COMPLETED');
  };
  await eventually('the last backup', saved, WITHIN_MS);

  const card = { payment_method_id: 'sim_ok', enabled: true, threshold_usd: 1, amount_usd: 50 };
  await callAsRenter('PUT', '/users/me/auto-top-up', card);
  expect(logIn(await until(id, 'RUNNING'), 'cat /workspace/kept')).toBe('mine\n');
  await callAsRenter('DELETE', `/pods/${id}`);
  await eventually('containers gone', async () => (await containersOf(id)).length === 0, WITHIN_MS);

  const { total, lines } = await callAsRenter<{ total: number; lines: { cause: string }[] }>(
    'GET',
    `/pods/${id}/statement`,
  );
  // The pod passes through several states before it runs again.
  const causes = lines.map(({ cause }) => cause);
  expect(causes.filter((cause, at) => cause !== causes[at - 1])).toEqual([
    ...['running', 'balance_exhausted', 'restarting', 'running'],
  ]);
  const { lines: posted } = await callAsRenter<{ lines: LedgerLine[] }>(
    'GET',
    '/users/me/ledger?limit=1000',
  );
  const ofUse = ['usage', 'pod-hold-settled'];
  const sum = (chosen: readonly LedgerLine[]) =>
    chosen.reduce((all, { amount_usd: amount }) => all + micro(amount), 0);
  expect(sum(posted.filter(({ cause_type }) => ofUse.includes(cause_type)))).toBe(-micro(total));
  expect(sum(posted)).toBe(micro((await me()).balance));
  expect(sum(posted)).toBe(micro(100) + micro(50) - refundUusd - micro(total));
}, 120_000);
