import type { ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import { GatewaySnapshot } from '../access/ssh/gateway-files.ts';
import { createExecEngine } from '../containers/engine/exec.ts';
import { startGateway } from './gateway.ts';
import { BOUNDS } from './limits.ts';

const SMALL = { sessionsPerPod: 2, sessions: 3, idleMs: 600_000, idleCheckMs: 100 };

let host: SshHost;
let pods: PodView[];
let gateway: ReturnType<typeof startGateway>;
/** Offset of the gateway's clock, so that the test need not wait for timeouts. */
let aheadMs = 0;

/** Starts another gateway for the same pods, at other ports and with small limits. */
beforeAll(async () => {
  host = await startSshHost();
  const launched = [await host.launch(), await host.launch()];
  const written = readFileSync(join(host.home, 'agent', 'ssh', 'gateway.json'), 'utf8');
  const snapshot = GatewaySnapshot.parse(JSON.parse(written));
  const { first } = await freePorts(launched.length);
  const portOf = (id: string) => first + launched.findIndex((pod) => pod.id === id);
  const moved = snapshot.pods.map((pod) => ({ ...pod, port: portOf(pod.id) }));
  const folder = join(host.home, 'small');
  mkdirSync(folder);
  const snapshotPath = join(folder, 'gateway.json');
  writeFileSync(snapshotPath, JSON.stringify({ pods: moved }));
  gateway = startGateway({
    snapshotPath,
    host: '127.0.0.1',
    pid: process.pid,
    engine: createExecEngine({ socketPath: '/var/run/docker.sock', clock: systemClock }),
    // Must not end the sessions of the host's gateway, which serves the same pods.
    hangUpLeftovers: () => 0,
    clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs },
    random: systemRandom,
    log: createLog({ name: 'small-gateway', level: 'silent' }),
    bounds: SMALL,
  });
  pods = launched.map((pod) => ({ ...pod, ssh: pod.ssh && { ...pod.ssh, port: portOf(pod.id) } }));
  for (const pod of pods) await eventually('a login', async () => (await enters(pod)) === true);
});
afterAll(async () => {
  await gateway.stop();
  await host.stop();
});

const enters = async (pod: PodView | undefined) =>
  pod !== undefined && (await host.ssh(pod, ['true'])).code === 0;

/** A session that sends output only in response to input. */
async function session(pod: PodView | undefined): Promise<ChildProcess> {
  if (pod === undefined) throw new Error('no pod');
  const child = host.spawnSsh(pod, ['echo up; cat']);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

const closed = (child: ChildProcess) =>
  child.exitCode ?? new Promise((resolve) => child.once('close', resolve));

it('allows 10 sessions per pod and 200 in total', () => {
  expect(BOUNDS).toMatchObject({ sessionsPerPod: 10, sessions: 200 });
});

it('rejects sessions above the limits per pod and in total, and accepts a new one when another has ended', async () => {
  const [a, b] = pods;
  const first = await session(a);
  const second = await session(a);
  expect(await enters(a)).toBe(false);
  const third = await session(b);
  expect(await enters(b)).toBe(false);
  first.kill();
  await eventually('room', () => enters(b));
  for (const child of [second, third]) child.kill();
});

it('closes an idle connection, but not one in use', async () => {
  const [a] = pods;
  const silent = await session(a);
  const busy = await session(a);
  aheadMs += SMALL.idleMs / 2;
  const echo = new Promise((resolve) => busy.stdout?.once('data', resolve));
  busy.stdin?.write('still here\n');
  await echo;
  aheadMs += SMALL.idleMs / 2;
  expect(await closed(silent)).toBe(255);
  expect(busy.exitCode).toBeNull();
  aheadMs += SMALL.idleMs;
  expect(await closed(busy)).toBe(255);
});

it('closes its listeners only while no client is logged in', async () => {
  const [a] = pods;
  const open = await session(a);
  expect(gateway.closeIfIdle()).toBe(false);
  open.stdin?.write('still here\n');
  await new Promise((resolve) => open.stdout?.once('data', resolve));
  open.kill();
  await eventually('a gateway without sessions', () => gateway.closeIfIdle());
  expect(await enters(a)).toBe(false);
});
