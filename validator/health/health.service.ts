/** Checks executors when they are due, or at once when asked, and reports to the central API. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { ExecutorToCheck, HealthReport } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import { createSemaphore } from '#shared/semaphore.ts';
import type { CentralClient } from '../central-client.ts';
import type { AgentIdentity, Facts, Policy } from '../checks/check.ts';
import { judgeAll } from '../checks/pipeline.ts';
import type { ProofPaces } from '../checks/proof-pace.ts';
import type { Standings } from '../checks/standing.service.ts';
import type { CheckRun } from '../evidence/evidence.document.ts';
import type { ValidatorMetrics } from '../metrics/metrics.ts';
import type { ExecutorDirectory } from './executor-directory.ts';
import { inspect } from './inspect.ts';
import type { ProofRound, ProofRounds } from './proof-round.ts';

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
  standings: Standings;
  paces: ProofPaces;
  proofs: ProofRounds;
  /** Keeps the run as evidence; nothing is reported that was not kept. */
  record(run: CheckRun): Promise<unknown>;
  metrics: Pick<ValidatorMetrics, 'checked' | 'passed'>;
  checkIntervalMs: number;
};

/** What is remembered of an executor between two inspections. */
type Memory = {
  checkedMs: number;
  verdict: HealthReport['verdict'];
  transportFailures: number;
  /** Of reasons that count only when they are seen again. */
  streaks: Record<string, number>;
};

export function createHealthService(options: HealthOptions) {
  const { central, directory, clock, log, policy, standings, proofs } = options;
  // What one executor has is settled before another one’s is looked at.
  const settling = createSemaphore(1);
  const places = createSemaphore(PARALLEL_INSPECTIONS);
  let memories = new Map<string, Memory>();

  async function check(executor: ExecutorToCheck, round: ProofRound): Promise<HealthReport> {
    const startedMs = clock.now();
    const facts = await look(executor, round);
    const report = await settling.run(() => settle(facts, startedMs));
    const reasons = report.checks.flatMap((result) => result.reason_code ?? []);
    log.info({ executor: executor.id, verdict: report.verdict, reasons }, 'executor checked');
    return report;
  }

  /** Proofs begin when every other executor of the pass has been looked at, too. */
  async function look(executor: ExecutorToCheck, round: ProofRound): Promise<Facts> {
    const client = options.clientOf(executor);
    const looking = places.run(() =>
      inspect(executor, { client, clock, policy, identityOf: options.identityOf }),
    );
    const facts = await looking.catch((error: unknown) => {
      round.leave();
      throw error;
    });
    const proven = await round.prove(facts, client);
    const ports = await proofs.ports(facts, client);
    return { ...facts, measured: { ...facts.measured, ...proven, ports } };
  }

  async function settle(seen: Facts, startedMs: number): Promise<HealthReport> {
    const { id } = seen.executor;
    const { transportFailures = 0, streaks = {} } = memories.get(id) ?? {};
    const before = await standings.before(seen.executor, seen.inventory);
    const facts = { ...seen, measured: { ...seen.measured, ...before, streaks } };
    const judgement = judgeAll(facts, transportFailures);
    const { report } = judgement;
    await options.record({ facts, transportFailures, report, startedMs, finishedMs: clock.now() });
    await standings.keep(facts, report);
    await options.paces.keep(facts);
    options.metrics.checked(id, report);
    memories.set(id, {
      checkedMs: clock.monotonicMs(),
      verdict: report.verdict,
      transportFailures: facts.inventory === null ? transportFailures + 1 : 0,
      streaks: judgement.streaks,
    });
    return report;
  }

  async function checkAndReport(executor: ExecutorToCheck, round: ProofRound): Promise<void> {
    const report = await check(executor, round);
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
      const beganMs = clock.monotonicMs();
      const listed = await directory.list();
      const ids = new Set(listed.map((executor) => executor.id));
      memories = new Map([...memories].filter(([id]) => ids.has(id)));
      proofs.keep(ids);
      const due = listed.filter(isDue);
      const round = proofs.begin(due.length);
      const passes = due.map((executor) =>
        checkAndReport(executor, round).catch((error: unknown) => {
          memories.delete(executor.id);
          log.warn({ executor: executor.id, error: messageOf(error) }, 'check not reported');
        }),
      );
      await Promise.all(passes);
      options.metrics.passed(clock.monotonicMs() - beganMs, ids);
    },
    /** Inspects one executor now; the caller records the report. */
    checkNow: async (executorId: string) =>
      check(await directory.find(executorId), proofs.begin(1)),
  };
}
