import { beforeEach, expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import {
  breakEngine,
  createFakeEngine,
  type FakeEngine,
} from '../../test/fakes/engine/fake-engine.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import type { Agent } from '../app.ts';
import { openDatabase } from '../database/database.ts';
import { LAUNCH_LIMIT_MS, LAUNCHED_AFTER_MS } from './launch-limit.ts';

const IMAGE = 'registry.example/one:1';
const ID = '00000000-0000-4000-8000-000000000001';
/** Number of event-loop turns that suffices for any chain of steps on the fake engine. */
const TURNS = 30;

let clock: ManualClock;
let engine: FakeEngine;
let database: DatabaseSync;
let agent: Agent;

beforeEach(() => {
  clock = createManualClock();
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, `sha256:${'a1'.repeat(32)}`);
  database = openDatabase(':memory:');
  startAgent();
});

function startAgent(): void {
  const random = { ...systemRandom, int: (maxExclusive: number) => maxExclusive - 1 };
  agent = createTestAgent({ engine, clock, random, database });
  agent.start();
}

async function pass(ms: number): Promise<void> {
  await clock.advance(ms);
  for (let turn = 0; turn < TURNS; turn += 1) await clock.advance(0);
}

async function put() {
  await agent.pods.put(ID, PodSpec.parse(podSpec({ image: { reference: IMAGE } })));
  await pass(0);
}

/** Moves the pod's creation back by `ms`, as if the agent had retried the launch since then. */
function age(ms: number): void {
  database.prepare('UPDATE pods SET created_ms = created_ms - :ms').run({ ms });
}

/** From now on, every container exits as soon as it has been started. */
function breakProcesses(): void {
  engine.hook = async (moment, method) => {
    if (moment !== 'after' || method !== 'startContainer') return;
    for (const { id } of engine.containers.values()) engine.exit(id, 1);
  };
}

it('stops retrying an image that could not be pulled within the limit, and keeps the reason', async () => {
  const mend = breakEngine(engine, 'resolveDigest', 'image_unreachable');
  await put();
  age(LAUNCH_LIMIT_MS - 60_000);
  await pass(30_000);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'backoff', reason: 'ImageUnreachable' });
  await pass(60_000);
  const failed = { phase: 'failed', reason: 'ImageUnreachable', next_retry_ms: null };
  expect(agent.pods.get(ID)).toMatchObject(failed);
  mend();
  await pass(60_000);
  expect(agent.pods.get(ID)).toMatchObject(failed);
  await agent.pods.remove(ID);
  await pass(0);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'removed' });
});

it('counts the time before a restart of the agent', async () => {
  breakEngine(engine, 'resolveDigest', 'image_unreachable');
  await put();
  age(LAUNCH_LIMIT_MS - 60_000);
  await agent.stop();
  startAgent();
  await pass(0);
  expect(agent.pods.get(ID).phase).toBe('backoff');
  await pass(120_000);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'failed', reason: 'ImageUnreachable' });
});

it('stops retrying a pod whose process has always exited at once', async () => {
  breakProcesses();
  await put();
  await pass(20_000);
  expect(agent.pods.get(ID)).toMatchObject({ launched: false });
  age(LAUNCH_LIMIT_MS - 60_000);
  await pass(20_000);
  expect(agent.pods.get(ID).phase).toBe('backoff');
  await pass(60_000);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'failed', reason: 'CrashLoopBackOff' });
});

it.each([
  ['was found running by a reconcile', 10_000],
  ['ended before a reconcile found it running', 1],
])('keeps restarting a pod whose container ran for half a minute and %s', async (_, ms) => {
  await put();
  await clock.advance(LAUNCHED_AFTER_MS);
  if (ms > 1) await pass(ms);
  if (ms > 1) expect(agent.pods.get(ID)).toMatchObject({ launched: true });
  breakProcesses();
  engine.exit(agent.pods.get(ID).container_id ?? '', 1);
  age(LAUNCH_LIMIT_MS);
  await pass(120_000);
  expect(agent.pods.get(ID)).toMatchObject({ phase: 'backoff', reason: 'CrashLoopBackOff' });
});
