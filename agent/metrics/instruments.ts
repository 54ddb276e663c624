/** Counters and histograms of the agent's work. Labels never contain text from clients. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { FINAL_STAGES } from '#shared/api/agent/operations.ts';
import { AUTH_FAILURES } from '#shared/signing/request-verifier.ts';
import type { OperationRow } from '../backups/operation.store.ts';
import type { FrameCounts } from '../logs/log-frames.ts';
import { LAUNCH_STAGES, type LaunchStage } from '../pods/step-ports.ts';

export const AGENT_PREFIX = 'podwright_agent_';
const MS_PER_SECOND = 1_000;

const ENGINE_SECONDS = [0.01, 0.05, 0.25, 1, 5, 30];
const RECONCILE_SECONDS = [0.01, 0.05, 0.25, 1, 5, 30];
const LAUNCH_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 1_800];
const OPERATION_SECONDS = [1, 5, 30, 120, 600, 3_600, 21_600];

/** Sources whose readings have a timeout. */
const COLLECTORS = ['gpu'] as const;
/** Errors of the list call that mean that the engine does not answer. */
const SILENT_ENGINE = ['unavailable', 'deadline'] as const;
const RECONCILE_FAILURES = ['engine_away', 'internal'] as const;
const AUTH_REASONS = [...AUTH_FAILURES, 'address', 'unlisted_route'] as const;
const ORPHAN_KINDS = ['container', 'network', 'volume'] as const;
const OPERATION_KINDS = ['backup', 'restore', 'drill'] as const;

export type AuthReason = (typeof AUTH_REASONS)[number];

export type Instruments = ReturnType<typeof createInstruments>;

export function createInstruments(registry: Registry) {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Counter({ name: AGENT_PREFIX + name, help, labelNames: [...labelNames], registers });
  const histogram = (
    name: string,
    help: string,
    { labels, buckets }: { labels: string[]; buckets: number[] },
  ) => new Histogram({ name: AGENT_PREFIX + name, help, labelNames: labels, buckets, registers });

  const authFailures = counter(
    'auth_failures_total',
    'Requests rejected by authentication, by reason.',
    ['reason'],
  );
  const firewallDrift = counter(
    'firewall_drift_total',
    "Lines of the pods' firewall rules that another program removed or added.",
  );
  const imagesRemoved = counter(
    'images_removed_total',
    'Unused images of this agent that were removed to free disk space.',
  );
  const imageBytesRemoved = counter(
    'image_bytes_removed_total',
    'Sizes of removed images, including layers that other images still use.',
  );
  const pulled = counter('image_pull_bytes_total', 'Bytes fetched by finished image pulls.');
  const reconnects = counter(
    'docker_events_reconnects_total',
    "Reconnects to the engine's event stream.",
  );
  const timeouts = counter(
    'collector_timeouts_total',
    'Readings that were aborted after their timeout, by source.',
    ['collector'],
  );
  const reconcileErrors = counter('reconcile_errors_total', 'Failed reconcile passes, by reason.', [
    'reason',
  ]);
  const restores = counter('restore_total', 'Finished restores, by result.', ['result']);
  const backupBytes = counter(
    'backup_bytes_total',
    'Bytes read or restored, by kind of operation.',
    ['kind'],
  );
  const logLines = counter('log_lines_total', 'Lines sent by log streams.');
  const logBytes = counter('log_bytes_total', 'Bytes sent by log streams, including framing.');
  const logGaps = counter('log_gap_total', 'Gaps reported by log streams.');
  // Without pod labels: the public listener must not reveal which pods exist.
  const logDropped = counter(
    'log_dropped_total',
    'Estimated lines that were rotated away before log streams could send them.',
  );
  const engineCalls = histogram(
    'docker_request_duration_seconds',
    'Calls of the container engine, by operation and result.',
    { labels: ['op', 'code'], buckets: ENGINE_SECONDS },
  );
  const reconciles = histogram(
    'reconcile_duration_seconds',
    'Duration of reconcile passes over all pods.',
    {
      labels: [],
      buckets: RECONCILE_SECONDS,
    },
  );
  const launches = histogram(
    'pod_launch_duration_seconds',
    'Duration of finished pod launch steps.',
    { labels: ['stage'], buckets: LAUNCH_SECONDS },
  );
  const operations = histogram('backup_duration_seconds', 'Duration of successful backups.', {
    labels: [],
    buckets: OPERATION_SECONDS,
  });
  const orphans = new Gauge({
    name: `${AGENT_PREFIX}orphans`,
    help: "Engine objects with the agent's label that belong to no pod, by kind; reported, never removed.",
    labelNames: ['kind'],
    registers,
  });
  const lastReconcile = new Gauge({
    name: `${AGENT_PREFIX}reconcile_last_success_timestamp_seconds`,
    help: 'Time of the last successful reconcile pass.',
    registers,
  });
  // Series with value 0 from the start: Prometheus computes no increase from a series that begins with the first event.
  for (const reason of AUTH_REASONS) authFailures.inc({ reason }, 0);
  for (const collector of COLLECTORS) timeouts.inc({ collector }, 0);
  for (const reason of RECONCILE_FAILURES) reconcileErrors.inc({ reason }, 0);
  for (const result of FINAL_STAGES) restores.inc({ result }, 0);
  for (const kind of OPERATION_KINDS) backupBytes.inc({ kind }, 0);
  for (const stage of LAUNCH_STAGES) launches.zero({ stage });
  for (const code of SILENT_ENGINE) engineCalls.zero({ op: 'listContainers', code });
  // No value before the first pass, instead of 0 (1970).
  lastReconcile.remove();

  return {
    authFailed: (reason: AuthReason) => authFailures.inc({ reason }),
    removedImage(bytes: number): void {
      imagesRemoved.inc();
      imageBytesRemoved.inc(bytes);
    },
    setOrphans(counts: Record<(typeof ORPHAN_KINDS)[number], number>): void {
      for (const kind of ORPHAN_KINDS) orphans.set({ kind }, counts[kind]);
    },
    firewallDrifted: (lines: number) => firewallDrift.inc(lines),
    pulledBytes: (bytes: number) => pulled.inc(bytes),
    eventsReopened: () => reconnects.inc(),
    timedOut: (collector: (typeof COLLECTORS)[number]) => timeouts.inc({ collector }),
    /** Records a reconcile pass; `failure` is null for success, `nowMs` is wall-clock time. */
    reconciled(
      tookMs: number,
      failure: (typeof RECONCILE_FAILURES)[number] | null,
      nowMs: number,
    ): void {
      if (failure !== null) {
        reconcileErrors.inc({ reason: failure });
        return;
      }
      reconciles.observe(tookMs / MS_PER_SECOND);
      lastReconcile.set(nowMs / MS_PER_SECOND);
    },
    engineCalled: (op: string, code: string, tookMs: number) =>
      engineCalls.observe({ op, code }, tookMs / MS_PER_SECOND),
    launched: (stage: LaunchStage, tookMs: number) =>
      launches.observe({ stage }, tookMs / MS_PER_SECOND),
    /** Records a finished backup, restore or drill. */
    operationEnded({ kind, stage, progress, started_ms, finished_ms }: OperationRow): void {
      if (kind === 'restore') restores.inc({ result: stage });
      backupBytes.inc({ kind }, progress.processed_bytes ?? 0);
      if (kind === 'backup' && stage === 'done' && finished_ms !== null) {
        operations.observe(Math.max(0, finished_ms - started_ms) / MS_PER_SECOND);
      }
    },
    /** Records frames sent by a log stream. */
    logged({ bytes, lines, dropped }: FrameCounts): void {
      logBytes.inc(bytes);
      logLines.inc(lines);
      if (dropped === null) return;
      logGaps.inc();
      logDropped.inc(dropped);
    },
  };
}
