/** Exit reasons and restarts of pods after a reboot of the host, a restart of the engine, and repeated failures. */
import { expect, it } from 'vitest';
import { PodSpec, type PodView } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { createTestAgent, podSpec, TEST_HOST } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine, type FakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import type { Agent } from '../app.ts';
import { openDatabase } from '../database/database.ts';

const IMAGE = 'registry.example/one:1';
const ID = '00000000-0000-4000-8000-000000000001';
const HOUR_MS = 3_600_000;
const TURNS = 30;

/** A host whose agent can be killed and started again, in the same boot or another. */
function createHost() {
  const clock = createManualClock();
  const database: DatabaseSync = openDatabase(':memory:');
  const executorId = systemRandom.uuid();
  let engine: FakeEngine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  let agent: Agent;

  async function pass(ms: number): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) await clock.advance(0);
    await clock.advance(ms);
    for (let turn = 0; turn < TURNS; turn += 1) await clock.advance(0);
  }

  function boot(bootId: string): void {
    agent = createTestAgent({
      engine,
      clock,
      database,
      executorId,
      random: { ...systemRandom, int: (maxExclusive) => maxExclusive - 1 },
      host: { ...TEST_HOST, bootId },
    });
    agent.start();
  }

  /** Abandons steps in progress, which never end, as after kill -9. */
  function kill(): void {
    engine.hook = () => new Promise(() => undefined);
    void agent.stop();
    engine = engine.reconnect();
  }

  return {
    clock,
    pass,
    boot,
    kill,
    engine: () => engine,
    async launch(): Promise<PodView> {
      await agent.pods.put(ID, PodSpec.parse(podSpec({ image: { reference: IMAGE } })));
      await pass(0);
      return agent.pods.get(ID);
    },
    view: () => agent.pods.get(ID),
    moves: () => agent.pods.events(ID).map((event) => [event['phase'], event['reason']]),
  };
}

it('treats a new boot id as a reboot of the host, without counting a crash or a restart', async () => {
  const host = createHost();
  host.boot('first boot');
  const { container_id } = await host.launch();
  host.kill();
  host.engine().exit(container_id ?? '', 255);
  host.boot('second boot');
  await host.pass(20_000);
  expect(host.view()).toMatchObject({
    phase: 'running',
    container_id,
    restart_count: 0,
    reason: null,
    last_exit: { exit_code: 255, reason: 'HostReboot' },
  });
  expect(host.moves()).toContainEqual(['backoff', 'HostReboot']);
  // A later exit in the new boot counts as the pod's own.
  host.engine().exit(container_id ?? '', 1);
  await host.pass(2_000);
  expect(host.view()).toMatchObject({ restart_count: 1, last_exit: { reason: 'ExitedNonZero' } });
});

it('does not treat a changed clock as a reboot', async () => {
  const host = createHost();
  host.boot('the only boot');
  const { container_id } = await host.launch();
  host.kill();
  // The wall clock moves by an hour, the kernel's uptime does not.
  await host.clock.advance(HOUR_MS);
  host.engine().exit(container_id ?? '', 3);
  host.boot('the only boot');
  await host.pass(2_000);
  expect(host.view()).toMatchObject({
    restart_count: 1,
    last_exit: { exit_code: 3, reason: 'ExitedNonZero' },
  });
});

it('restarts a pod at once, without backoff, after the engine was restarted', async () => {
  const host = createHost();
  host.boot('boot');
  const { container_id } = await host.launch();
  await host.pass(60_000);
  host.engine().restart();
  await host.pass(2_000);
  expect(host.view()).toMatchObject({
    phase: 'running',
    container_id,
    restart_count: 0,
    reason: null,
    last_exit: { reason: 'DockerUnavailable' },
  });
  host.engine().exit(container_id ?? '', 1);
  await host.pass(2_000);
  expect(host.view()).toMatchObject({ restart_count: 1, last_exit: { reason: 'ExitedNonZero' } });
});

it('recognizes a restart of the engine while the agent was not running', async () => {
  const host = createHost();
  host.boot('boot');
  await host.launch();
  host.kill();
  host.engine().restart();
  await host.clock.advance(60_000);
  host.boot('boot');
  await host.pass(1_000);
  expect(host.view()).toMatchObject({ phase: 'running', restart_count: 0 });
  expect(host.view().last_exit?.reason).toBe('DockerUnavailable');
});

it('reconnects a running pod to its network', async () => {
  const host = createHost();
  host.boot('boot');
  const { container_id } = await host.launch();
  host.engine().loseNetwork(container_id ?? '');
  await host.pass(10_000);
  expect(host.engine().networks.size).toBe(1);
  expect(host.engine().containers.get(container_id ?? '')?.networks).toHaveLength(1);
  expect(host.view()).toMatchObject({ phase: 'running', restart_count: 0, last_exit: null });
});

it('reports CrashLoopBackOff with the next retry, and resets after ten healthy minutes', async () => {
  const host = createHost();
  host.boot('boot');
  const { container_id } = await host.launch();
  const crash = async (waitMs: number) => {
    await host.pass(waitMs);
    expect(host.view().phase).toBe('running');
    host.engine().exit(container_id ?? '', 1);
    await host.pass(0);
    return host.view();
  };
  expect((await crash(1_000)).reason).toBe('ExitedNonZero');
  expect((await crash(1_000)).reason).toBe('ExitedNonZero');
  const third = await crash(2_000);
  expect(third).toMatchObject({
    phase: 'backoff',
    reason: 'CrashLoopBackOff',
    next_retry_ms: host.clock.now() + 4_000,
    last_exit: { exit_code: 1, reason: 'ExitedNonZero' },
  });
  expect(third.message).toContain('3 times in a row');
  // Running for ten minutes resets the count of failures.
  const later = await crash(4_000 + 10 * 60_000);
  expect(later).toMatchObject({
    reason: 'ExitedNonZero',
    next_retry_ms: host.clock.now() + 1_000,
  });
});
