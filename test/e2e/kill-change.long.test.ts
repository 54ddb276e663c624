/**
 * kill -9 of the agent at changes that an edit makes in the engine, for edits that succeed and edits that roll back.
 */
import { afterAll, beforeAll, inject, it } from 'vitest';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';
import { type Operation, startKillMatrix } from '../fakes/faults/kill-matrix.ts';

const spec = podSpec({
  environment: { TEST_RUN: inject('testRun') },
  volumes: ['/data'],
  stop_grace_seconds: 1,
});
let matrix: Awaited<ReturnType<typeof startKillMatrix>>;

beforeAll(async () => {
  matrix = await startKillMatrix(spec, 28_000 + (process.pid % 40) * 100);
});
afterAll(() => matrix.close());

/** A change takes longer than other operations, because the new container must run for some seconds. */
const common = { onRunning: true, containers: 1 };

const put = (change: Partial<PodSpecInput>): Operation['request'] => {
  const environment = { ...spec.environment, NEW: '1' };
  return (client, id) => client.putPod(id, { ...spec, generation: 2, environment, ...change });
};

const isRolledBack: Operation['isDone'] = (view, before) =>
  view.phase === 'running' &&
  view.change?.stage === 'failed' &&
  view.observed_generation === 1 &&
  view.container_id === before?.container_id;

const OPERATIONS: [string, Operation][] = [
  [
    'an edit',
    {
      ...common,
      request: put({}),
      isDone: (view) =>
        view.phase === 'running' && view.observed_generation === 2 && view.change === null,
    },
  ],
  [
    'the roll-back from a container that ends at once',
    { ...common, request: put({ entrypoint: ['/bin/sh', '-c', 'exit 3'] }), isDone: isRolledBack },
  ],
  [
    'the roll-back from a container that cannot be started',
    { ...common, request: put({ entrypoint: ['/no/such/program'] }), isDone: isRolledBack },
  ],
];

it.each(OPERATIONS)(
  '%s survives kill -9 at a sample of its changes',
  (name, operation) => matrix.run(name, operation),
  420_000,
);
