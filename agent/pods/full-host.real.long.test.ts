/** Pods that fill the disk of their host, which also has the agent's store. Needs root. */
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { type OwnEngine, startOwnEngine } from '../../test/fakes/engine/own-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { type CutDisk, mountCutDisk } from '../../test/fakes/faults/cut-disk.ts';
import type { Agent } from '../app.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { openHome } from '../database/database.ts';

const MIB = 2 ** 20;
const DISK_MIB = 200;
const LIMIT_BYTES = 32 * MIB;
/** More than the file system has inodes: mkfs.ext4 creates one for each 4 KiB. */
const FILES = 60_000;

let disk: CutDisk;
let own: OwnEngine;
let home: ReturnType<typeof openHome>;
let agent: Agent;
let neighbour: string;
beforeAll(async () => {
  disk = mountCutDisk(DISK_MIB);
  own = await startOwnEngine({ daemonArguments: [`--data-root=${join(disk.folder, 'docker')}`] });
  const nowMs = systemClock.now();
  home = openHome(join(disk.folder, 'home'), { nowMs, sshPorts: () => ({}), openKeys: null });
  const engine = createDockerodeEngine({ socketPath: own.socketPath, clock: systemClock });
  agent = createTestAgent({ engine, clock: systemClock, database: home.database });
  agent.start();
  neighbour = await launch('sleep 3600');
});
afterAll(async () => {
  await agent?.stop();
  home?.close();
  await own?.remove();
  disk?.close();
});

const view = async (id: string) =>
  PodView.parse((await agent.server.inject(`/v1/pods/${id}`)).json());
const remove = (id: string) => agent.server.inject({ method: 'DELETE', url: `/v1/pods/${id}` });

async function launch(script: string): Promise<string> {
  const id = systemRandom.uuid();
  const spec = podSpec({
    entrypoint: ['/bin/sh', '-c', script],
    internal_ports: [],
    stop_grace_seconds: 1,
  });
  const payload = { ...spec, limits: { ...spec.limits, disk_bytes: LIMIT_BYTES } };
  const { statusCode } = await agent.server.inject({
    method: 'PUT',
    url: `/v1/pods/${id}`,
    payload,
  });
  expect(statusCode).toBe(200);
  await eventually('the pod', async () => (await view(id)).phase === 'running');
  return id;
}

it.each([
  // The second writer takes what the first, with its large blocks, leaves.
  ['bytes', 'dd if=/dev/zero of=/1 bs=1M; while :; do cat /etc/passwd >>/2; done', 'bfree'],
  ['files', `mkdir /f; cd /f; seq ${FILES} | xargs touch; sleep 600`, 'ffree'],
] as const)(
  'stops a pod that uses up the %s of the disk, and stores it',
  async (_, script, free) => {
    const attacker = await launch(`sleep 1; ${script}`);
    let least = Number.POSITIVE_INFINITY;
    const stopped = await eventually('the stop', async () => {
      least = Math.min(least, statfsSync(disk.folder)[free]);
      const seen = await view(attacker);
      return seen.phase === 'failed' && seen;
    });
    expect(stopped.reason).toBe('DiskQuotaExceeded');
    // The agent may stop the pod before nothing is left.
    expect(least).toBeLessThan(DISK_MIB * 50);
    expect((await view(neighbour)).phase).toBe('running');
    expect((await agent.server.inject('/healthz')).statusCode).toBe(200);
    expect((await remove(attacker)).statusCode).toBe(200);
    await eventually('the removal', async () => (await view(attacker)).phase === 'removed');
    await remove(await launch('sleep 600'));
  },
);
