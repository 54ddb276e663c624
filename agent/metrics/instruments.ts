/** What the agent counts and times of its own work (agent reference 15, set E). No label takes what somebody wrote. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { OperationRow } from '../backups/operation.store.ts';
import type { FrameCounts } from '../logs/log-frames.ts';
import type { LaunchStage } from '../pods/step-ports.ts';

export const AGENT_PREFIX = 'podwright_agent_';
const MS_PER_SECOND = 1_000;

const ENGINE_SECONDS = [0.01, 0.05, 0.25, 1, 5, 30];
const RECONCILE_SECONDS = [0.01, 0.05, 0.25, 1, 5, 30];
const LAUNCH_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 1_800];
const OPERATION_SECONDS = [1, 5, 30, 120, 600, 3_600, 21_600];

export type Instruments = ReturnType<typeof createInstruments>;

/** Registers all of them; a counter without labels begins at 0. */
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
    'Requests refused by authentication, by reason.',
    ['reason'],
  );
  const firewallDrift = counter(
    'firewall_drift_total',
    "Lines of the pods' firewall rules that something else had removed or added.",
  );
  const imagesRemoved = counter(
    'images_removed_total',
    'Unused images of this agent that were removed because the disk filled up.',
  );
  const imageBytesRemoved = counter(
    'image_bytes_removed_total',
    'Their sizes; layers that other images share are counted, though they stay.',
  );
  const pulled = counter('image_pull_bytes_total', 'What finished pulls of images have brought.');
  const reconnects = counter(
    'docker_events_reconnects_total',
    "Times that the stream of the engine's events was opened again.",
  );
  const timeouts = counter(
    'collector_timeouts_total',
    'Readings of a source that had to be broken off.',
    ['collector'],
  );
  const reconcileErrors = counter(
    'reconcile_errors_total',
    'Passes over all pods that came to nothing, by reason.',
    ['reason'],
  );
  const restores = counter('restore_total', 'Restores that have ended, by result.', ['result']);
  const backupBytes = counter(
    'backup_bytes_total',
    'Bytes read or restored, by kind of operation.',
    ['kind'],
  );
  const logLines = counter('log_lines_total', 'Lines that log streams have sent.');
  const logBytes = counter('log_bytes_total', 'What log streams have sent, with their frames.');
  const logGaps = counter('log_gap_total', 'Times that a log stream told of lines that it lacks.');
  // Of all pods together, for this is anybody's to read: which pods there are is the provider's own listener's to tell.
  const logDropped = counter(
    'log_dropped_total',
    'Lines that log streams could not give any more, for they were rotated away; an estimate.',
  );
  const engineCalls = histogram(
    'docker_request_duration_seconds',
    'Calls of the container engine, by what was asked and what came of it.',
    { labels: ['op', 'code'], buckets: ENGINE_SECONDS },
  );
  const reconciles = histogram('reconcile_duration_seconds', 'Passes over all pods.', {
    ...{ labels: [], buckets: RECONCILE_SECONDS },
  });
  const launches = histogram(
    'pod_launch_duration_seconds',
    'Steps on the way to a running pod that came to their end.',
    { labels: ['stage'], buckets: LAUNCH_SECONDS },
  );
  const operations = histogram('backup_duration_seconds', 'Backups that succeeded.', {
    ...{ labels: [], buckets: OPERATION_SECONDS },
  });
  const orphans = new Gauge({
    name: `${AGENT_PREFIX}orphans`,
    help: 'Objects with our label that belong to no pod, by kind; they are reported, never removed.',
    labelNames: ['kind'],
    registers,
  });
  const lastReconcile = new Gauge({
    name: `${AGENT_PREFIX}reconcile_last_success_timestamp_seconds`,
    help: 'When all pods were last compared with what the engine has.',
    registers,
  });
  // Never is not 1970.
  lastReconcile.remove();

  return {
    authFailed: (reason: string) => authFailures.inc({ reason }),
    removedImage(bytes: number): void {
      imagesRemoved.inc();
      imageBytesRemoved.inc(bytes);
    },
    /** How many objects of each kind belong to no pod. */
    setOrphans(counts: Record<string, number>): void {
      for (const [kind, count] of Object.entries(counts)) orphans.set({ kind }, count);
    },
    firewallDrifted: (lines: number) => firewallDrift.inc(lines),
    /** A pull has ended, having brought so much. */
    pulledBytes: (bytes: number) => pulled.inc(bytes),
    eventsReopened: () => reconnects.inc(),
    timedOut: (collector: string) => timeouts.inc({ collector }),
    /** `failure` null: the pass did its work; `nowMs` is wall-clock time. */
    reconciled(tookMs: number, failure: 'engine_away' | 'internal' | null, nowMs: number): void {
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
    /** A backup, restore or drill is over. */
    operationEnded({ kind, stage, progress, started_ms, finished_ms }: OperationRow): void {
      if (kind === 'restore') restores.inc({ result: stage });
      backupBytes.inc({ kind }, progress.processed_bytes ?? 0);
      if (kind === 'backup' && stage === 'committed' && finished_ms !== null) {
        operations.observe(Math.max(0, finished_ms - started_ms) / MS_PER_SECOND);
      }
    },
    /** A log stream sends frames. */
    logged({ bytes, lines, dropped }: FrameCounts): void {
      logBytes.inc(bytes);
      logLines.inc(lines);
      if (dropped === null) return;
      logGaps.inc();
      logDropped.inc(dropped);
    },
  };
}
