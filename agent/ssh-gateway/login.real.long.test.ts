/** Logins over restarts, kills and reinstallations of agent and gateway, and up to the limit of sessions. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { runClient, type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { echoes, longSession } from '../../test/fakes/agents/ssh-session.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { BOUNDS } from './limits.ts';

let host: SshHost;
let pod: PodView;

beforeAll(async () => {
  host = await startSshHost();
  pod = await host.launch();
});
afterAll(() => host.stop());

it('a login causes no SSH host key warning at a port that another pod had, even after the agent’s home was deleted', async () => {
  const other = await startSshHost();
  try {
    const first = await other.launch();
    const known = join(other.home, 'first_known_hosts');
    writeFileSync(known, `[127.0.0.1]:${other.portOf(first)} ${first.ssh?.host_key}\n`);
    await other.reinstall();
    const next = await other.launch();
    expect([next.id === first.id, other.portOf(next)]).toEqual([false, other.portOf(first)]);
    const strict = ['-o', 'StrictHostKeyChecking=yes', '-o', `UserKnownHostsFile=${known}`];
    const args = [...strict, ...other.options(other.portOf(next)), 'root@127.0.0.1', 'echo in'];
    expect(await runClient('ssh', args)).toMatchObject({ code: 0, stderr: '' });
  } finally {
    await other.stop();
  }
});

it('sessions continue while the agent restarts, which then finds its pods unchanged', async () => {
  const session = await longSession(host, pod);
  await host.killAgent();
  expect(await echoes(session, 'alone')).toBe('alone\n');
  expect((await host.ssh(pod, ['echo new'])).stdout.toString()).toBe('new\n');
  await host.startAgentAgain();
  const again = await host.readyPod(pod.id);
  expect(again.ssh).toEqual(pod.ssh);
  expect(await echoes(session, 'together')).toBe('together\n');
  session.child.kill();
  await session.closed;
});

it('sessions are possible again after a killed gateway has restarted', async () => {
  const session = await longSession(host, pod);
  await host.restartGateway();
  expect(await session.closed).toBe(255);
  await eventually('a login', async () => (await host.ssh(pod, ['true'])).code === 0);
  expect((await host.readyPod(pod.id)).ssh).toEqual(pod.ssh);
});

it('sessions end with a killed gateway, but detached processes keep running', async () => {
  const marks = 'echo $$ >/tmp/shell; setsid sleep 777 & echo $! >/tmp/detached';
  const child = host.spawnSsh(pod, [`${marks}; echo up; exec sleep 888`]);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const lives = async (file: string) =>
    (await host.ssh(pod, [`kill -0 $(cat /tmp/${file})`])).code === 0;
  expect(await lives('shell')).toBe(true);
  await host.restartGateway();
  await eventually('a login', async () => (await host.ssh(pod, ['true'])).code === 0);
  await eventually('the end of the session', async () => !(await lives('shell')));
  expect(await lives('detached')).toBe(true);
});

it('a pod retains port and host key over a reboot and a new generation', async () => {
  await host.client().rebootPod(pod.id, 1);
  const rebooted = await host.readyPod(
    pod.id,
    (view) => view.reboots_done === 1 && view.ssh?.ready === true,
  );
  expect(rebooted.ssh).toEqual(pod.ssh);
  expect((await host.ssh(pod, ['true'])).code).toBe(0);
});

it(`a login is limited to ${BOUNDS.sessionsPerPod} sessions per pod, independently of other pods`, async () => {
  const other = await host.launch();
  const pods = [pod, other].flatMap((view) =>
    Array.from({ length: BOUNDS.sessionsPerPod }, () => view),
  );
  const sessions = await Promise.all(pods.map((view) => longSession(host, view)));
  expect((await host.ssh(pod, ['true'])).code).toBe(255);
  const answers = await Promise.all(sessions.map((one, index) => echoes(one, `word ${index}`)));
  expect(answers).toEqual(sessions.map((_, index) => `word ${index}\n`));
  for (const { child } of sessions) child.kill();
  await Promise.all(sessions.map(({ closed }) => closed));
  await eventually('a free slot', async () => (await host.ssh(pod, ['true'])).code === 0);
  await host.client().deletePod(other.id);
});
