/** The agent's own metrics (agent reference 15, set E). A scrape reads memory and never measures anything. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Registry } from 'prom-client';
import { POD_PHASES, type PodPhase } from '#shared/agent-api/pod.ts';
import { UPDATE_STATES, type UpdateState } from '#shared/agent-api/update-status.ts';
import type { Clock } from '#shared/clock.ts';
import { VERSION } from '#shared/version.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/** Which leases there are: `held` by a pod, `free`, or `dirty` (a process outlived its pod). */
export type GpuLeaseState = { uuid: string; state: 'held' | 'free' | 'dirty' };

const PREFIX = 'podwright_agent_';
const LOOP_SAMPLE_MS = 100;
const NANOSECONDS = 1e9;

/** One registry per agent, so that several agents fit into one process. */
export function createMetrics({ clock, executorId }: { clock: Clock; executorId: string }) {
  const registry = new Registry();
  const registers = [registry];

  new Gauge({
    name: `${PREFIX}build_info`,
    help: 'Always 1; the labels tell what runs.',
    labelNames: ['version', 'executor_id'],
    registers,
  }).set({ version: VERSION, executor_id: executorId }, 1);

  const pods = new Gauge({
    name: `${PREFIX}pods`,
    help: 'Pods by phase.',
    labelNames: ['phase'],
    registers,
  });
  const updateState = new Gauge({
    name: `${PREFIX}update_state`,
    help: 'How the update of this agent stands: 1 for its state, 0 for the others.',
    labelNames: ['state'],
    registers,
  });
  const authFailures = new Counter({
    name: `${PREFIX}auth_failures_total`,
    help: 'Requests refused by authentication, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const orphans = new Gauge({
    name: `${PREFIX}orphans`,
    help: 'Objects with our label that belong to no pod, by kind; they are reported, never removed.',
    labelNames: ['kind'],
    registers,
  });
  const firewallDrift = new Counter({
    name: `${PREFIX}firewall_drift_total`,
    help: "Lines of the pods' firewall rules that something else had removed or added.",
    registers,
  });
  const imagesRemoved = new Counter({
    name: `${PREFIX}images_removed_total`,
    help: 'Unused images of this agent that were removed because the disk filled up.',
    registers,
  });
  const imageBytesRemoved = new Counter({
    name: `${PREFIX}image_bytes_removed_total`,
    help: 'Their sizes; layers that other images share are counted, though they stay.',
    registers,
  });
  const leases = new Gauge({
    name: `${PREFIX}gpu_lease_state`,
    help: '1 for the present state of each GPU.',
    labelNames: ['uuid', 'state'],
    registers,
  });

  const collectedMs = new Map<string, number>();
  new Gauge({
    name: `${PREFIX}collector_age_seconds`,
    help: 'Time since each source last gave good figures.',
    labelNames: ['collector'],
    registers,
    collect() {
      for (const [collector, atMs] of collectedMs) {
        this.set({ collector }, (clock.monotonicMs() - atMs) / 1000);
      }
    },
  });

  const delay = monitorEventLoopDelay({ resolution: LOOP_SAMPLE_MS });
  delay.enable();
  new Gauge({
    name: `${PREFIX}event_loop_lag_seconds`,
    help: 'Longest delay of the event loop since the last scrape.',
    registers,
    collect() {
      // What is measured is the whole period of the sampling timer; the lag is what exceeds it.
      this.set(Math.max(0, delay.max / NANOSECONDS - LOOP_SAMPLE_MS / 1000));
      delay.reset();
    },
  });

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

    setUpdateState(present: UpdateState): void {
      for (const state of UPDATE_STATES) updateState.set({ state }, state === present ? 1 : 0);
    },
    /** `phases` holds the phase of every pod. */
    setPods(phases: readonly PodPhase[]): void {
      for (const phase of POD_PHASES) {
        pods.set({ phase }, phases.filter((other) => other === phase).length);
      }
    },

    /** Replaces all: a card that is gone must not keep its last state. */
    setGpuLeases(states: readonly GpuLeaseState[]): void {
      leases.reset();
      for (const { uuid, state } of states) leases.set({ uuid, state }, 1);
    },

    /** A source has just given good figures. */
    collected: (collector: string) => void collectedMs.set(collector, clock.monotonicMs()),

    contentType: registry.contentType,
    /** Prometheus' text format. */
    render: () => registry.metrics(),
    /** Stops the sampling of the event loop. */
    close: () => void delay.disable(),
  };
}
