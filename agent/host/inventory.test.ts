import { expect, it } from 'vitest';
import { Inventory } from '#shared/api/agent/inventory.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { KERNEL_SOURCES } from '../../test/fixtures/host-inventory.ts';
import { EngineError } from '../containers/engine/engine.ts';
import { createSimulatedDriver } from '../gpu/simulated-gpus.ts';
import { noUpdates } from '../updates/update.state.ts';
import { registerInventoryRoutes } from './host.routes.ts';
import { createInventoryService } from './inventory.service.ts';

const EXECUTOR_ID = '3f9f41a6-0001-4000-8000-000000000001';

function setUp() {
  const clock = createManualClock();
  const state = { engineAnswers: true, gpuTried: null as boolean | null, asked: 0 };
  const inventory = createInventoryService({
    clock,
    executorId: EXECUTOR_ID,
    sharePercent: 100,
    engine: {
      info: async () => {
        state.asked += 1;
        if (!state.engineAnswers) throw new EngineError('unavailable', 'gone');
        return {
          version: '29.1.0',
          storageDriver: 'overlay2',
          cgroupVersion: '2',
          runtimes: ['runc', 'nvidia'],
          rootDir: '/var/lib/docker',
          seccomp: true,
        };
      },
    },
    gpu: createSimulatedDriver(EXECUTOR_ID, ['NVIDIA L4']),
    host: {
      read: async (path) => ({
        cpu: { model: 'x', cores: 8, utilization_percent: null },
        memory: { total_kib: 2, available_kib: 1 },
        disk: { path, total_kib: 2, free_kib: 1 },
        os: { name: 'x', kernel: 'x', hostname: 'x', boot_id: 'x' },
        hardware: null,
      }),
    },
    hostSources: async () => KERNEL_SOURCES,
    availabilityOf: () => ({ leased_by: 'pod', lease_state: 'held', cordoned: null }),
    ports: () => ({ first: 1, last: 2, free: 2 }),
    isolation: () => ({ firewall: 'enforced', disk_quota: 'poll' }),
    orphans: () => [],
    gpuRuntimeTried: () => state.gpuTried,
    updateStatus: noUpdates,
  });
  const log = createLog({ name: 'test', level: 'silent' });
  const server = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 1000 });
  registerInventoryRoutes(server, { inventory });
  return { clock, state, server };
}

it('reports engine, GPUs and host', async () => {
  const { server, state } = setUp();
  const response = await server.inject('/v1/inventory');
  expect(Inventory.parse(response.json())).toMatchObject({
    executor_id: EXECUTOR_ID,
    simulated: true,
    gpu: { driver: 'simulated', devices: [{ name: 'NVIDIA L4', leased_by: 'pod' }] },
    disk: { path: '/var/lib/docker' },
    isolation: { firewall: 'enforced', disk_quota: 'poll', seccomp: true },
    docker: { version: '29.1.0', gpu_runtime: true, sysbox_runtime: false },
  });
  expect(state.asked).toBe(1);
});

it('collects once for all requests within two seconds', async () => {
  const { server, state, clock } = setUp();
  await Promise.all([server.inject('/v1/inventory'), server.inject('/v1/inventory')]);
  expect(state.asked).toBe(1);
  await clock.advance(2_000);
  await server.inject('/v1/inventory');
  expect(state.asked).toBe(2);
});

it('prefers the result of a GPU test to the engine’s list of runtimes', async () => {
  const { server, state } = setUp();
  state.gpuTried = false;
  const inventory = (await server.inject('/v1/inventory')).json();
  expect(inventory.docker.gpu_runtime).toBe(false);
});

it('uses cached facts of the engine while the engine does not answer, and fails if it has never answered', async () => {
  const { server, state, clock } = setUp();
  state.engineAnswers = false;
  const refused = await server.inject('/v1/inventory');
  expect([refused.statusCode, refused.json().error.code]).toEqual([502, 'upstream_unavailable']);
  state.engineAnswers = true;
  expect((await server.inject('/v1/inventory')).statusCode).toBe(200);
  state.engineAnswers = false;
  await clock.advance(2_000);
  expect((await server.inject('/v1/inventory')).json().docker.version).toBe('29.1.0');
});
