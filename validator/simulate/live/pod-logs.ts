/** Logs of modelled pods, for people who open a pod of a simulated marketplace. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createModelLog } from '../fleet/model-log.ts';
import type { JournalEvent } from '../world/journal.ts';
import type { World } from '../world/world.ts';

export type PodLogs = {
  /** Receives the events of the journal. A log begins with the first command of a pod to its agent. */
  record(event: JournalEvent): void;
};

const HOUR_MS = 3_600_000;
const NS_PER_MS = '000000';
const PERCENT = 100;
/** Load of a modelled job in percent. */
const LEAST_LOAD = 60;
/** Lines retained of each pod. */
const MAX_LINES = 200;

export function createPodLogs({ clock, fleet, randomOf }: World): PodLogs {
  /** Writes the log of a pod until it ends or the clock is closed. */
  async function run(executorId: string, podId: string): Promise<void> {
    const agent = fleet.agents.host(executorId);
    const random = randomOf(`log ${podId}`);
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
      write(`modelled job: hour ${hour}, GPUs at ${load} %`);
      await clock.sleep(HOUR_MS);
    }
    agent.podLogs.delete(podId);
  }

  return {
    record({ kind, executor, pod }) {
      if (kind !== 'agent-put' || executor === undefined || pod === undefined) return;
      if (fleet.agents.host(executor).podLogs.has(pod)) return;
      void run(executor, pod);
    },
  };
}
