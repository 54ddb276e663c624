/** kill -9 of the agent at changes that launch, reboot and removal make in the engine. */
import { afterAll, beforeAll, inject, it } from 'vitest';
import { podSpec } from '../fakes/agents/test-agent.ts';
import { type Operation, startKillMatrix } from '../fakes/faults/kill-matrix.ts';

const spec = podSpec({
  environment: { TEST_RUN: inject('testRun') },
  volumes: ['/data'],
  stop_grace_seconds: 1,
});
let matrix: Awaited<ReturnType<typeof startKillMatrix>>;

beforeAll(async () => {
  matrix = await startKillMatrix(spec, 24_000 + (process.pid % 40) * 100);
});
afterAll(() => matrix.close());

const common = { containers: 1 };

const OPERATIONS: [string, Operation][] = [
  [
    'launch',
    {
      ...common,
      onRunning: false,
      request: (client, id) => client.putPod(id, spec),
      isDone: (view) => view.phase === 'running',
    },
  ],
  [
    'reboot',
    {
      ...common,
      onRunning: true,
      request: (client, id) => client.rebootPod(id, 1),
      isDone: (view, before) =>
        view.phase === 'running' &&
        view.reboots_done === 1 &&
        view.container_id === before?.container_id,
    },
  ],
  [
    'removal',
    {
      ...common,
      onRunning: true,
      request: (client, id) => client.deletePod(id),
      isDone: (view) => view.phase === 'removed',
      containers: 0,
    },
  ],
];

it.each(OPERATIONS)(
  'a %s survives kill -9 at a sample of its changes',
  (name, operation) => matrix.run(name, operation),
  400_000,
);
