/** Composition root of the agent: ports in, one listening-ready server and its loops out. */

import { withDeadline } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Vitals } from '#shared/runtime/liveness.ts';
import type { Loop } from '#shared/runtime/loop.ts';
import { createPodAccess } from './access/access.ts';
import type { AgentPorts } from './agent-ports.ts';
import { createSafekeeping } from './backups/backups.ts';
import { timedEngine } from './containers/engine/timed-engine.ts';
import { createDiskPercent } from './host/disk-percent.ts';
import { registerHostView } from './host/host-routes.ts';
import { problemOfStore } from './host/store-probe.ts';
import { createListeners } from './listeners.ts';
import { createMeasurements } from './metrics/measurements.ts';
import { startWork } from './periodic-work.ts';
import { createPodCore } from './pod-core.ts';
import { registerPodRoutes } from './pods/pod.routes.ts';
import { createUpkeep } from './pods/reconcile-loops.ts';
import { createSelfUpdate } from './updates/updates.ts';
import { createVerification } from './verify/verification.ts';

/** Sooner than a look at the process is given up: an engine that hangs is away, and no ailment of ours. */
const PING_WITHIN_MS = 5_000;

export type Agent = ReturnType<typeof createAgent>;

/** Two agents may live in one process: nothing here is shared between calls. */
export function createAgent(given: AgentPorts) {
  const { clock, log, metrics } = given;
  const ports = { ...given, engine: timedEngine(given.engine, clock, metrics.engineCalled) };
  const stopping = new AbortController();
  const core = createPodCore({
    ...ports,
    onFirewallDrift: metrics.firewallDrifted,
    onImageRemoved: metrics.removedImage,
    diskPercent: createDiskPercent(clock, ports.engine),
    onOrphans: metrics.setOrphans,
    onPulled: metrics.pulledBytes,
    onLaunchStep: metrics.launched,
    onOom: (podId) => measurements.metricsJob.noteOom(podId),
    onReconciled: (tookMs, failure) => metrics.reconciled(tookMs, failure, clock.now()),
  });
  const upkeep = createUpkeep(ports, core, stopping.signal);
  const access = createPodAccess(ports, core);
  const verification = createVerification(ports, core, stopping.signal);
  const updates = createSelfUpdate(ports, core, verification);
  const { logFollowers } = access;
  const { status: updateStatus } = updates;
  const measurements = createMeasurements(ports, core, { logFollowers, updateStatus });
  const safekeeping = createSafekeeping(ports, core, (row) => {
    metrics.operationEnded(row);
    measurements.metricsJob.noteOperation(row);
  });
  const { operations } = safekeeping;

  const listeners = createListeners(ports);
  const { server, monitoring } = listeners;
  registerPodRoutes(server, core.service);
  for (const part of [safekeeping, access, verification]) part.register(server);
  measurements.register(listeners);
  const { gpuRuntimeTried } = verification;
  registerHostView(listeners, ports, core, { gpuRuntimeTried, updateStatus });

  let loops: Loop[] = [];

  return {
    server,
    /** Metrics and health, where they are separate. Listening is the caller's. */
    monitoring,
    /** What the routes call, without HTTP: for tests. */
    pods: core.service,
    core,
    samples: measurements.samples,
    metricsJob: measurements.metricsJob,
    operations,
    /** How the reconcile loop, the store and the engine are, once started. */
    vitals: async (): Promise<Vitals> => ({
      engine: await withDeadline(clock, PING_WITHIN_MS, ports.engine.ping()).then(
        () => 'answers',
        () => 'away',
      ),
      storeProblem: problemOfStore(ports.database, clock.now()),
      sinceTurnMs: upkeep.sinceTurnMs(),
    }),
    /** Starts the loops; never waits for the engine. Listening is the caller's. */
    start(): void {
      const warnOf = (what: string) => (error: unknown) =>
        log.warn({ detail: messageOf(error) }, `${what} of an earlier run may be left`);
      verification.removeStaleProbes().catch(warnOf('probes'));
      verification.removeStaleProofs().catch(warnOf('proofs'));
      access.removeLeftovers().catch(warnOf('shells'));
      upkeep.start();
      const work = [...verification.work, ...measurements.work, ...updates.work, ...listeners.work];
      loops = work.map((each) => startWork(each, { clock, log }));
      operations.start();
    },
    /** Ends requests, loops and workers; pods keep running. */
    async stop(): Promise<void> {
      stopping.abort();
      await access.close();
      await listeners.close();
      await operations.stop();
      await Promise.all([upkeep.stop(), ...loops.map((each) => each.stop())]);
      metrics.close();
      ports.kernelLog.close();
    },
  };
}
