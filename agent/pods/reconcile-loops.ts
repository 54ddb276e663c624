/** What keeps pods as they are wanted while the agent runs: the reconcile, the engine's events, the gateway, and all that looks again and again. */

import { createTurns } from '#shared/runtime/liveness.ts';
import type { Loop } from '#shared/runtime/loop.ts';
import { NOTEBOOK_INTERVAL_MS } from '../access/notebook/notebook.service.ts';
import { OWN_SSHD_INTERVAL_MS } from '../access/ssh/own-sshd.job.ts';
import type { AgentPorts } from '../agent-ports.ts';
import { IMAGE_GC_INTERVAL_MS } from '../containers/images/image-gc.job.ts';
import { FIREWALL_INTERVAL_MS } from '../containers/network/firewall.job.ts';
import { type PeriodicWork, startWork } from '../periodic-work.ts';
import type { PodCore } from '../pod-core.ts';
import { DISK_INTERVAL_MS } from './disk-watch.job.ts';
import { createLifetimes, LIFETIME_INTERVAL_MS } from './lifetime.job.ts';
import { ORPHANS_INTERVAL_MS } from './orphans.job.ts';
import { RECONCILE_INTERVAL_MS } from './reconcile.job.ts';
import { VOLUME_WATCH_INTERVAL_MS } from './volume-watch.job.ts';

/** `stopping` ends the waiting for events. */
export function createUpkeep(ports: AgentPorts, core: PodCore, stopping: AbortSignal) {
  const { clock, log, metrics, gatewayLink } = ports;
  const { records, service, reconcile, supervisor, notebooks, ssh } = core;
  const lifetimes = createLifetimes({ records, service, clock, log });
  const turns = createTurns(clock);
  const every = (intervalMs: number, name: string, run: () => Promise<unknown>): PeriodicWork => ({
    ...{ name, intervalMs, run },
  });
  const work: PeriodicWork[] = [
    every(LIFETIME_INTERVAL_MS, 'lifetimes', () => lifetimes.runOnce()),
    every(ORPHANS_INTERVAL_MS, 'orphans', () => core.orphans.runOnce()),
    every(IMAGE_GC_INTERVAL_MS, 'image clean-up', () => core.imageCore.gc.runOnce()),
    every(NOTEBOOK_INTERVAL_MS, 'notebooks', () => notebooks.runOnce()),
    every(OWN_SSHD_INTERVAL_MS, 'own sshd', () => core.ownSshd.runOnce()),
    every(DISK_INTERVAL_MS, 'disk watch', () => core.diskWatch.runOnce()),
    every(VOLUME_WATCH_INTERVAL_MS, 'volume watch', () => core.volumeWatch.runOnce()),
    ...core.gpuWork,
  ];
  let loops: Loop[] = [];
  let events = Promise.resolve();
  let gateway: { stop(): Promise<void> } | null = null;

  return {
    /** Never waits for the engine. */
    start(): void {
      const begin = (each: PeriodicWork) => startWork(each, { clock, log });
      // Before any pod is looked at: the rules of the firewall.
      const rules = begin(every(FIREWALL_INTERVAL_MS, 'firewall', () => core.firewall.runOnce()));
      const relist = begin(
        every(RECONCILE_INTERVAL_MS, 'reconcile', () => turns.noted(reconcile.runOnce)),
      );
      loops = [rules, relist, ...work.map(begin)];
      ssh.publish();
      gateway = gatewayLink.follow(() => ssh.exchangeTakenPorts());
      let isFirst = true;
      events = reconcile.followEvents(stopping, () => {
        if (!isFirst) metrics.eventsReopened();
        isFirst = false;
        relist.wake();
      });
    },

    /** Milliseconds since the last pass of the reconcile ended. */
    sinceTurnMs: turns.sinceMs,

    /** Pods keep running. */
    async stop(): Promise<void> {
      await Promise.all([...loops.map((each) => each.stop()), events, supervisor.stop()]);
      await notebooks.stop();
      await gateway?.stop();
      ssh.close();
    },
  };
}
