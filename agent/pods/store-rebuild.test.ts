/** An agent whose store is lost keeps the running pods, their ports and their files. */
import { copyFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { isEmptyDatabase } from '#shared/runtime/sqlite.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine, type FakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { damageTable } from '../../test/fakes/faults/damage-file.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import type { Agent } from '../app.ts';
import { openHome, rebuildOf } from '../database/database.ts';

const IMAGE = 'registry.example/one:1';
const ID = '00000000-0000-4000-8000-000000000001';
const ID_2 = '00000002-0000-4000-8000-000000000002';
const EXECUTOR = '00000000-0000-4000-8000-00000000000e';

let home: string;
let clock: ManualClock;
let engine: FakeEngine;
let closeHome: () => void;

const OPENING = {
  nowMs: 0,
  sshPorts: () => ({}),
  openKeys() {
    for (const name of ['identity.key', 'secret.key']) writeFileSync(join(home, name), 'key');
  },
};

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'podwright-'));
  clock = createManualClock();
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
});
afterEach(() => {
  closeHome();
  rmSync(home, { recursive: true });
});

function start(sshPorts: Record<string, number> = {}): Agent {
  const opening = { ...OPENING, sshPorts: () => sshPorts };
  const { database, close } = openHome(home, { ...opening, nowMs: clock.now() });
  closeHome = () => {
    closeHome = () => undefined;
    close();
  };
  const agent = createTestAgent({ engine, clock, executorId: EXECUTOR, database, sshPorts });
  agent.start();
  return agent;
}

async function settle(ms = 0): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) await clock.advance(0);
  await clock.advance(ms);
  for (let turn = 0; turn < 30; turn += 1) await clock.advance(0);
}

async function stop(agent: Agent): Promise<void> {
  const stopped = agent.stop();
  await settle(1_000);
  await stopped;
  closeHome();
}

const spec = () =>
  PodSpec.parse(podSpec({ image: { reference: IMAGE }, internal_ports: [22, 8_080] }));
const ready = async (agent: Agent) => (await agent.server.inject('/readyz')).json();

it('keeps a running container, its ports and its SSH port when the store was damaged', async () => {
  const first = start();
  // The first pod takes the ports that a new store would lease first.
  await first.pods.put(ID_2, spec());
  await first.pods.put(ID, spec());
  await settle();
  const before = first.pods.get(ID);
  expect(before.phase).toBe('running');
  const containers = [...engine.containers.keys()];
  await stop(first);
  damageTable(join(home, 'agent.sqlite'), 'pods');

  const sshPort = before.ports['22'] ?? 0;
  engine.setAway(true);
  const second = start({ [ID]: sshPort });
  await settle();
  expect(await ready(second)).toMatchObject({
    ready: false,
    components: { store: { ok: false, message: expect.stringContaining('agent.sqlite.damaged-') } },
  });
  // A pod that is sent before the ports are known could get another pod's ports.
  await expect(second.pods.put(ID, spec())).rejects.toMatchObject({ code: 'upstream_unavailable' });
  engine.setAway(false);
  await settle(5_000);
  await second.pods.put(ID, spec());
  await settle(10_000);
  expect(second.pods.get(ID)).toMatchObject({ phase: 'running', ports: before.ports });
  expect([...engine.containers.keys()]).toEqual(containers);
  // The other pod still runs without a record.
  expect((await ready(second)).components.store.ok).toBe(false);
  await second.pods.put(ID_2, spec());
  await settle(10_000);
  expect([...engine.containers.keys()]).toEqual(containers);
  await clock.advance(1_000);
  expect((await ready(second)).components.store).toEqual({
    ok: true,
    message: 'knows all running pods',
  });
  await stop(second);
});

it.each([0, 1])('builds the store anew if %i bytes of it are left', async (bytes) => {
  await stop(start());
  truncateSync(join(home, 'agent.sqlite'), bytes);
  const { database, close } = openHome(home, OPENING);
  expect(rebuildOf(database)?.cause).toContain('it lost its tables');
  close();
});

it('has its tables in the file, so that a lost journal costs only the newest changes', async () => {
  const first = start();
  copyFileSync(join(home, 'agent.sqlite'), join(home, 'copy.sqlite'));
  await stop(first);
  expect(isEmptyDatabase(join(home, 'copy.sqlite'))).toBe(false);
});

it('keeps a running container and its ports when the store lost its newest changes', async () => {
  const first = start();
  copyFileSync(join(home, 'agent.sqlite'), join(home, 'copy.sqlite'));
  await first.pods.put(ID_2, spec());
  await first.pods.put(ID, spec());
  await settle();
  const before = first.pods.get(ID);
  const containers = [...engine.containers.keys()];
  await stop(first);
  copyFileSync(join(home, 'copy.sqlite'), join(home, 'agent.sqlite'));

  const second = start({ [ID]: before.ports['22'] ?? 0 });
  await second.pods.put(ID, spec());
  await settle(10_000);
  expect(second.pods.get(ID)).toMatchObject({ phase: 'running', ports: before.ports });
  expect([...engine.containers.keys()]).toEqual(containers);
  await stop(second);
});

it('refuses a home with a store in which a key is missing', async () => {
  await stop(start());
  rmSync(join(home, 'identity.key'));
  expect(() => openHome(home, OPENING)).toThrow(
    `the key ${join(home, 'identity.key')} is missing, although`,
  );
});
