/** Output of modelled pods and load of their GPUs, for people who open a pod of a simulated marketplace. */
import type { PodMetrics } from '#shared/api/agent/metrics.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createModelLog } from '../fleet/model-log.ts';
import type { JournalEvent } from '../world/journal.ts';
import type { World } from '../world/world.ts';

export type PodOutput = {
  /** Receives the events of the journal. Output begins with the first command of a pod to its agent. */
  record(event: JournalEvent): void;
};

const HOUR_MS = 3_600_000;
const NS_PER_MS = '000000';
const PERCENT = 100;
/** Load of a modelled job in percent. */
const LEAST_LOAD = 60;
/** Lines retained of each pod. */
const MAX_LINES = 200;
const SAMPLE_SECONDS = 10;
const CORES_PER_GPU = 8;
const BYTES_PER_MIB = 2 ** 20;

export function createPodOutput({ clock, fleet, randomOf }: World): PodOutput {
  /** Writes the log of a pod until it ends or the clock is closed. */
  async function run(executorId: string, podId: string): Promise<void> {
    const agent = fleet.agents.host(executorId);
    const random = randomOf(`output ${podId}`);
    const load = LEAST_LOAD + random.int(PERCENT - LEAST_LOAD);
    const log = createModelLog();
    agent.podLogs.set(podId, log);
    let lines = 0;
    const write = (text: string) => {
      const nowMs = clock.now();
      lines += 1;
      log.write({
        log: `${text}\n`,
        id: `m.${nowMs}${NS_PER_MS}.${lines}`,
        ts: `${naiveUtc(nowMs)}Z`,
        stream: 'stdout',
      });
      if (lines > MAX_LINES) log.rotate(1);
    };
    write('modelled job: preparing its data');
    await clock.sleep(fleet.hostOf(executorId).startMs);
    for (let hour = 0; agent.pods.has(podId); hour += 1) {
      agent.podMetrics.set(podId, metricsOf(executorId, podId, load));
      write(`modelled job: hour ${hour}, GPUs at ${load} %`);
      await clock.sleep(HOUR_MS);
    }
    agent.podLogs.delete(podId);
    agent.podMetrics.delete(podId);
  }

  function metricsOf(executorId: string, podId: string, load: number): PodMetrics {
    const { gpu } = fleet.inventoryOf(fleet.hostOf(executorId));
    const uuids = fleet.agents.host(executorId).pods.get(podId)?.gpu_uuids ?? [];
    const devices = gpu.devices.filter(({ uuid }) => uuids.includes(uuid));
    const memory = devices.reduce((total, each) => total + each.memory_total_mib, 0);
    return {
      simulated: true,
      age_ms: 0,
      interval_seconds: SAMPLE_SECONDS,
      idle_ms: null,
      cpu: {
        used_cores: (devices.length * CORES_PER_GPU * load) / PERCENT,
        limit_cores: devices.length * CORES_PER_GPU,
      },
      memory: {
        used_bytes: Math.floor((memory * BYTES_PER_MIB * load) / PERCENT),
        limit_bytes: memory * BYTES_PER_MIB,
      },
      gpus: devices.map(({ leased_by, lease_state, cordoned, ...device }) => ({
        ...device,
        utilization_percent: load,
        memory_used_mib: Math.floor((device.memory_total_mib * load) / PERCENT),
      })),
      history: [],
    };
  }

  return {
    record({ kind, executor, pod }) {
      if (kind !== 'agent-put' || executor === undefined || pod === undefined) return;
      if (fleet.agents.host(executor).podLogs.has(pod)) return;
      void run(executor, pod);
    },
  };
}
