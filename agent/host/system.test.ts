import { expect, it } from 'vitest';
import { createReadiness, type ReadinessProbe } from '#shared/api/readiness.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { noUpdates } from '../updates/update.state.ts';
import { registerSystemRoutes } from './host.routes.ts';

const EXECUTOR_ID = '3f9f41a6-0001-4000-8000-000000000001';
const fine = async () => 'fine';
const broken = async () => {
  throw new Error('broken');
};
const silent = () => new Promise<string>(() => undefined);

function setUp(
  checks: Partial<Record<'docker' | 'database' | 'gpu', ReadinessProbe['check']>> = {},
) {
  const clock = createManualClock();
  const log = createLog({ name: 'test', level: 'silent' });
  const server = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 1000 });
  const readiness = createReadiness(clock, {
    docker: { required: true, check: checks.docker ?? fine },
    database: { required: true, check: checks.database ?? fine },
    gpu: { required: false, check: checks.gpu ?? fine },
  });
  registerSystemRoutes(server, {
    executorId: EXECUTOR_ID,
    startedMs: 1,
    simulated: true,
    updateStatus: noUpdates,
    readiness,
  });
  return { server, clock };
}

it.each([
  ['everything answers', {}, 200],
  ['docker is broken', { docker: broken }, 503],
  ['the database is broken', { database: broken }, 503],
  ['the GPUs are broken', { gpu: broken }, 200],
])('/readyz reports when %s', async (_, checks, status) => {
  const response = await setUp(checks).server.inject('/readyz');
  expect(response.statusCode).toBe(status);
  const good = { ok: true, message: 'fine' };
  const expected = { docker: good, database: good, gpu: good };
  for (const name of Object.keys(checks)) {
    Object.assign(expected, { [name]: { ok: false, message: 'broken' } });
  }
  expect(response.json()).toEqual({ ready: status === 200, components: expected });
});

it('does not wait for a component that hangs', async () => {
  const { server, clock } = setUp({ docker: silent });
  const pending = server.inject('/readyz').then((response) => response);
  while ((await Promise.race([pending, pause()])) === undefined) await clock.advance(500);
  expect((await pending).json().components.docker).toEqual({
    ok: false,
    message: 'no answer within 2000 ms',
  });
});

it('probes the components at most once a second, whatever the number of callers', async () => {
  let asked = 0;
  const { server, clock } = setUp({
    docker: async () => {
      asked += 1;
      return 'fine';
    },
  });
  await Promise.all([server.inject('/readyz'), server.inject('/readyz')]);
  expect(asked).toBe(1);
  await clock.advance(1_000);
  await server.inject('/readyz');
  expect(asked).toBe(2);
});

it('reports its health, version and update status', async () => {
  const { server } = setUp();
  const answer = async (path: string) => (await server.inject(path)).json();
  expect(await answer('/healthz')).toEqual({ status: 'ok' });
  expect(await answer('/version')).toEqual({
    version: VERSION,
    executor_id: EXECUTOR_ID,
    started_ms: 1,
    simulated: true,
  });
  expect(await answer('/update-status')).toMatchObject({
    kind: null,
    state: 'IDLE',
    update_pending: null,
    running_version: VERSION,
  });
});

/** Waits for a short real time. */
function pause(): Promise<undefined> {
  return systemClock.sleep(1).then(() => undefined);
}
