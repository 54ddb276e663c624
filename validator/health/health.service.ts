/** Checks executors when they are due, or at once when asked, and reports to the central API. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { ExecutorToCheck, HealthReport } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import { createLimit } from '#shared/limit.ts';
import type { Log } from '#shared/log.ts';
import type { CentralClient } from '../central-client.ts';
import type { Policy } from '../checks/check.ts';
import { judge } from '../checks/pipeline.ts';
import type { ExecutorDirectory } from './executor-directory.ts';
import { inspect } from './inspect.ts';

export type HealthService = ReturnType<typeof createHealthService>;

const PARALLEL_INSPECTIONS = 8;

export type HealthOptions = {
  central: CentralClient;
  directory: ExecutorDirectory;
  clientOf(executor: ExecutorToCheck): AgentClient;
  clock: Clock;
  log: Log;
  policy: Policy;
  checkIntervalMs: number;
};

/** What is remembered of an executor between two inspections. */
type Memory = { checkedMs: number; verdict: HealthReport['verdict']; transportFailures: number };

export function createHealthService(options: HealthOptions) {
  const { central, directory, clock, log, policy } = options;
  const limit = createLimit(PARALLEL_INSPECTIONS);
  let memories = new Map<string, Memory>();

  async function check(executor: ExecutorToCheck): Promise<HealthReport> {
    const failuresBefore = memories.get(executor.id)?.transportFailures ?? 0;
    const facts = await inspect(executor, options.clientOf(executor), clock, policy);
    const report = judge(facts, failuresBefore);
    memories.set(executor.id, {
      checkedMs: clock.monotonicMs(),
      verdict: report.verdict,
      transportFailures: facts.inventory === null ? failuresBefore + 1 : 0,
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
        limit(() => checkAndReport(executor)).catch((error: unknown) => {
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
