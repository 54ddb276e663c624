/** The agent's metrics (agent reference 15). A scrape reads memory and never measures anything. */
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

/** Two registries per agent, so that several agents fit into one process: for anybody, and what tells of renters. */
export function createMetrics({ clock, executorId }: { clock: Clock; executorId: string }) {
  const open = new Registry();
  const ofPods = new Registry();
  const instruments = createInstruments(open);

  registerFamily(open, {
    name: `${AGENT_PREFIX}build_info`,
    help: 'Always 1; the labels tell what runs.',
    type: 'gauge',
    labels: ['version', 'executor_id'],
    samples: () => [{ labels: { version: VERSION, executor_id: executorId }, value: 1 }],
  });

  const collectedMs = new Map<string, number>();
  registerFamily(open, {
    name: `${AGENT_PREFIX}collector_age_seconds`,
    help: 'Time since each source last gave good figures.',
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
    registers: [open],
    collect() {
      // What is measured is the whole period of the sampling timer; the lag is what exceeds it.
      this.set(Math.max(0, delay.max / NANOSECONDS - LOOP_SAMPLE_MS / MS_PER_SECOND));
      delay.reset();
    },
  });

  return {
    ...instruments,
    /** A source has just given good figures. */
    collected: (collector: string) => void collectedMs.set(collector, clock.monotonicMs()),
    /** For anybody. Throws where a name is taken. */
    add(families: readonly Family[]): void {
      for (const family of families) registerFamily(open, family);
    },
    /** For a listener of the provider's own: names of pods, images, processes. */
    addOfPods(families: readonly Family[]): void {
      for (const family of families) registerFamily(ofPods, family);
    },
    contentType: open.contentType,
    /** Prometheus' text format, without what tells of renters. */
    render: () => open.metrics(),
    /** All. */
    renderAll: async () => `${await open.metrics()}${await ofPods.metrics()}`,
    /** Stops the sampling of the event loop. */
    close: () => void delay.disable(),
  };
}
