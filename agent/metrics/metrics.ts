/** The agent's metrics. A scrape reads from memory and never measures anything. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Gauge, Registry } from 'prom-client';
import type { Clock } from '#shared/runtime/clock.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { type Family, registerFamily } from '#shared/telemetry/family.ts';
import { AGENT_PREFIX, createInstruments } from './instruments.ts';

export type Metrics = ReturnType<typeof createMetrics>;

const LOOP_SAMPLE_MS = 100;
const NANOSECONDS = 1e9;
const MS_PER_SECOND = 1_000;

/** Creates two registries per agent: public metrics, and metrics that identify renters. */
export function createMetrics({ clock, executorId }: { clock: Clock; executorId: string }) {
  const publicRegistry = new Registry();
  const podRegistry = new Registry();
  const instruments = createInstruments(publicRegistry);

  registerFamily(publicRegistry, {
    name: `${AGENT_PREFIX}build_info`,
    help: 'Always 1; the labels identify version and executor.',
    type: 'gauge',
    labels: ['version', 'executor_id'],
    samples: () => [{ labels: { version: VERSION, executor_id: executorId }, value: 1 }],
  });

  const collectedMs = new Map<string, number>();
  registerFamily(publicRegistry, {
    name: `${AGENT_PREFIX}collector_age_seconds`,
    help: 'Time since each source last returned good values.',
    type: 'gauge',
    labels: ['collector'],
    samples: () =>
      [...collectedMs].map(([collector, atMs]) => ({
        labels: { collector },
        value: (clock.monotonicMs() - atMs) / MS_PER_SECOND,
      })),
  });

  const delay = monitorEventLoopDelay({ resolution: LOOP_SAMPLE_MS });
  delay.enable();
  new Gauge({
    name: `${AGENT_PREFIX}event_loop_lag_seconds`,
    help: 'Longest delay of the event loop since the last scrape.',
    registers: [publicRegistry],
    collect() {
      // The histogram contains whole periods of the sampling timer; the lag is the excess over the timer's interval.
      this.set(Math.max(0, delay.max / NANOSECONDS - LOOP_SAMPLE_MS / MS_PER_SECOND));
      delay.reset();
    },
  });

  return {
    ...instruments,
    /** Records that a source returned good values. */
    collected: (collector: string) => void collectedMs.set(collector, clock.monotonicMs()),
    /** Adds families to the public registry. Throws if a name is in use. */
    add(families: readonly Family[]): void {
      for (const family of families) registerFamily(publicRegistry, family);
    },
    /** Adds families that identify renters: names of pods, images, processes. */
    addOfPods(families: readonly Family[]): void {
      for (const family of families) registerFamily(podRegistry, family);
    },
    contentType: publicRegistry.contentType,
    /** Renders the public metrics in Prometheus' text format. */
    render: () => publicRegistry.metrics(),
    renderAll: async () => `${await publicRegistry.metrics()}${await podRegistry.metrics()}`,
    /** Stops sampling the event loop. */
    close: () => void delay.disable(),
  };
}
