/** Checks executors when they are due, or at once when asked, and reports to the central API. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { ExecutorToCheck, HealthReport } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import { createSemaphore } from '#shared/semaphore.ts';
import type { CentralClient } from '../central-client.ts';
import type { AgentIdentity, Policy } from '../checks/check.ts';
import { judge } from '../checks/pipeline.ts';
import type { CheckRun } from '../evidence/evidence.document.ts';
import type { ExecutorDirectory } from './executor-directory.ts';
import { inspect } from './inspect.ts';

export type HealthService = ReturnType<typeof createHealthService>;

const PARALLEL_INSPECTIONS = 8;

export type HealthOptions = {
  central: CentralClient;
  directory: ExecutorDirectory;
  clientOf(executor: ExecutorToCheck): AgentClient;
  /** Of an agent that has just answered. */
  identityOf(executor: ExecutorToCheck): Promise<AgentIdentity>;
  clock: Clock;
  log: Log;
  policy: Policy;
  /** Keeps the run as evidence; nothing is reported that was not kept. */
  record(run: CheckRun): Promise<unknown>;
  checkIntervalMs: number;
};

/** What is remembered of an executor between two inspections. */
type Memory = { checkedMs: number; verdict: HealthReport['verdict']; transportFailures: number };

export function createHealthService(options: HealthOptions) {
  const { central, directory, clock, log, policy } = options;
  const places = createSemaphore(PARALLEL_INSPECTIONS);
  let memories = new Map<string, Memory>();

  async function check(executor: ExecutorToCheck): Promise<HealthReport> {
    const transportFailures = memories.get(executor.id)?.transportFailures ?? 0;
    const startedMs = clock.now();
    const facts = await inspect(executor, {
      ...{ clock, policy, identityOf: options.identityOf },
      client: options.clientOf(executor),
    });
    const report = judge(facts, transportFailures);
    const finishedMs = clock.now();
    await options.record({ facts, transportFailures, report, startedMs, finishedMs });
    memories.set(executor.id, {
      checkedMs: clock.monotonicMs(),
      verdict: report.verdict,
      transportFailures: facts.inventory === null ? transportFailures + 1 : 0,
    });
    const reasons = report.checks.flatMap((result) => result.reason_code ?? []);
    log.info({ executor: executor.id, verdict: report.verdict, reasons }, 'executor checked');
    return report;
  }

  async function checkAndReport(executor: ExecutorToCheck): Promise<void> {
    const report = await check(executor);
    await central.reportHealth({
      miner_address: executor.executor_ip_address,
      miner_port: Number(executor.executor_ip_port),
      miner_hotkey: executor.miner_hotkey,
      container_port: Number(executor.executor_ip_port),
      rental_in_progress: executor.rented,
      gpu_uuids: report.inventory?.gpu.devices.map((device) => device.uuid) ?? [],
      executor_id: executor.id,
      report,
    });
  }

  /** Unverified ones are looked at on every pass: their provider is waiting for the verdict. */
  function isDue(executor: ExecutorToCheck): boolean {
    const memory = memories.get(executor.id);
    if (memory === undefined || memory.verdict !== 'verified') return true;
    return clock.monotonicMs() - memory.checkedMs >= options.checkIntervalMs;
  }

  return {
    /** One pass over the list: every due executor, some at a time; one failing report stops no other. */
    async runOnce(): Promise<void> {
      const listed = await directory.list();
      const ids = new Set(listed.map((executor) => executor.id));
      memories = new Map([...memories].filter(([id]) => ids.has(id)));
      const passes = listed.filter(isDue).map((executor) =>
        places
          .run(() => checkAndReport(executor))
          .catch((error: unknown) => {
            memories.delete(executor.id);
            log.warn({ executor: executor.id, error: messageOf(error) }, 'check not reported');
          }),
      );
      await Promise.all(passes);
    },
    /** Inspects one executor now; the caller records the report. */
    checkNow: async (executorId: string) => check(await directory.find(executorId)),
  };
}
