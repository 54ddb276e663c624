/** The validator's metrics and their route. A scrape reads memory and runs a few queries on the evidence store. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { CheckResult, HealthReport } from '#shared/api/central/validator-routes.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { clockFamily } from '#shared/telemetry/clock-family.ts';
import { registerFamily } from '#shared/telemetry/family.ts';
import { CHECKS } from './checks/checks.ts';
import { countMessages, oldestMessageMs } from './store/outbox.store.ts';
import type { EvidenceStore } from './store/tables.ts';
import { lastConfirmedMs } from './weights/epoch.store.ts';

export type ValidatorMetrics = ReturnType<typeof createValidatorMetrics>;

export type MetricsOptions = {
  clock: Clock;
  store: EvidenceStore;
  hotkey: Hotkey;
  /** Pending signatures of the key thread; 0 if the key is in this thread. */
  signaturesWaiting(): number;
  trust: Pick<ClockTrust, 'isSuspect'>;
};

const PREFIX = 'podwright_validator_';
const MS_PER_SECOND = 1_000;
const CYCLE_BUCKETS = [1, 5, 15, 30, 60, 120, 300, 600, 900];
const PROOF_BUCKETS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const DEVICES = ['cpu', 'gpu'] as const;
const VERDICTS = ['verified', 'failed', 'withheld'] as const satisfies HealthReport['verdict'][];
/** Label for reasons that are not in the table of checks: agents must not choose label values. */
const OTHER_REASON = 'other';
/** Reasons of agents that are too old or do not run the expected release. */
const OUTDATED: ReadonlySet<string> = new Set(['AGENT_OUTDATED', 'AGENT_IMAGE_OUTDATED']);
const REASONS = new Map(CHECKS.map(({ id, remedies }) => [id, new Set(Object.keys(remedies))]));

/** Creates the metrics, with one registry per validator so that several can run in one process. */
export function createValidatorMetrics({ clock, store, hotkey, ...options }: MetricsOptions) {
  const registry = new Registry();
  const registers = [registry];
  /** Last verdict by executor id; listed executors only. */
  let verdicts = new Map<string, HealthReport['verdict']>();
  /** Time since which an agent is outdated, by executor id. */
  let outdatedMs = new Map<string, number>();

  new Gauge({
    name: `${PREFIX}build_info`,
    help: 'Always 1; labels name the version and hotkey.',
    labelNames: ['version', 'hotkey'],
    registers,
  }).set({ version: VERSION, hotkey }, 1);
  registerFamily(registry, clockFamily(PREFIX, options.trust));
  const cycles = new Histogram({
    name: `${PREFIX}cycle_seconds`,
    help: 'Duration of one pass over the due executors.',
    buckets: CYCLE_BUCKETS,
    registers,
  });
  const checks = new Counter({
    name: `${PREFIX}checks_total`,
    help: 'Judged checks by check and reason; the reason is empty for passed checks.',
    labelNames: ['check', 'reason'],
    registers,
  });
  const judged = new Counter({
    name: `${PREFIX}verdicts_total`,
    help: 'Verdicts by kind.',
    labelNames: ['verdict'],
    registers,
  });
  new Gauge({
    name: `${PREFIX}executors`,
    help: 'Executors by their last verdict.',
    labelNames: ['verdict'],
    registers,
    collect() {
      for (const verdict of VERDICTS) this.set({ verdict }, countOf(verdicts, verdict));
    },
  });
  new Gauge({
    name: `${PREFIX}withheld_ratio`,
    help: 'Share of executors whose last verdict was withheld.',
    registers,
    collect() {
      this.set(verdicts.size === 0 ? 0 : countOf(verdicts, 'withheld') / verdicts.size);
    },
  });
  const proofs = new Histogram({
    name: `${PREFIX}proof_seconds`,
    help: 'Duration of proofs of work by device.',
    labelNames: ['device'],
    buckets: PROOF_BUCKETS,
    registers,
  });
  new Gauge({
    name: `${PREFIX}outbox_age_seconds`,
    help: 'Age of the oldest waiting outbox message; 0 if none waits.',
    registers,
    async collect() {
      const since = await oldestMessageMs(store);
      this.set(since === null ? 0 : secondsSince(since));
    },
  });
  new Gauge({
    name: `${PREFIX}outbox_messages`,
    help: 'Outbox messages by state: waiting for delivery, or parked after the last attempt.',
    labelNames: ['state'],
    registers,
    async collect() {
      const { waiting, parked } = await countMessages(store);
      this.set({ state: 'waiting' }, waiting);
      this.set({ state: 'parked' }, parked);
    },
  });
  new Gauge({
    name: `${PREFIX}weights_posted_timestamp_seconds`,
    help: 'Time at which the newest published weights were computed; 0 before the first.',
    registers,
    async collect() {
      this.set(((await lastConfirmedMs(store)) ?? 0) / MS_PER_SECOND);
    },
  });
  new Gauge({
    name: `${PREFIX}signer_queue`,
    help: 'Pending signatures of the key thread.',
    registers,
    collect() {
      this.set(options.signaturesWaiting());
    },
  });
  new Gauge({
    name: `${PREFIX}executor_update_lag_seconds`,
    help: 'Longest time for which an agent has been outdated; 0 if no agent is outdated.',
    registers,
    collect() {
      const since = Math.min(...outdatedMs.values());
      this.set(Number.isFinite(since) ? secondsSince(since) : 0);
    },
  });

  // Series with value 0 from the start: Prometheus computes no increase from a series that begins with the first event.
  for (const [check, reasons] of REASONS) {
    for (const reason of ['', ...reasons]) checks.inc({ check, reason }, 0);
  }
  for (const verdict of VERDICTS) judged.inc({ verdict }, 0);
  for (const device of DEVICES) proofs.zero({ device });

  const secondsSince = (atMs: number) => Math.max(0, (clock.now() - atMs) / MS_PER_SECOND);

  function count({ check_id: check, reason_code: reason }: CheckResult): void {
    const isKnown = reason === null || REASONS.get(check)?.has(reason) === true;
    checks.inc({ check, reason: isKnown ? (reason ?? '') : OTHER_REASON });
  }

  return {
    checked(executorId: string, { verdict, checks: results }: HealthReport): void {
      for (const result of results) count(result);
      judged.inc({ verdict });
      verdicts.set(executorId, verdict);
      const isOutdated = results.some(({ reason_code }) => OUTDATED.has(reason_code ?? ''));
      if (!isOutdated) outdatedMs.delete(executorId);
      else if (!outdatedMs.has(executorId)) outdatedMs.set(executorId, clock.now());
    },
    /** Records a pass of `ms` over the list and drops executors that are no longer listed. */
    passed(ms: number, listed: ReadonlySet<string>): void {
      cycles.observe(ms / MS_PER_SECOND);
      verdicts = new Map([...verdicts].filter(([id]) => listed.has(id)));
      outdatedMs = new Map([...outdatedMs].filter(([id]) => listed.has(id)));
    },
    proven: (device: (typeof DEVICES)[number], ms: number) =>
      proofs.observe({ device }, ms / MS_PER_SECOND),
    contentType: registry.contentType,
    /** Renders all metrics in Prometheus' text format. */
    render: () => registry.metrics(),
  };
}

function countOf(verdicts: ReadonlyMap<string, string>, verdict: string): number {
  return [...verdicts.values()].filter((other) => other === verdict).length;
}

/** GET /metrics, public: no metric names a single executor. */
export function registerMetricsRoutes(
  server: HttpServer,
  { metrics }: { metrics: Pick<ValidatorMetrics, 'render' | 'contentType'> },
): void {
  server.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.render()),
  );
}
