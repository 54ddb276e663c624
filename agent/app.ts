/** Composition root of the agent: ports in, one listening-ready server and its loops out. */
import { SAMPLE_INTERVAL_MS } from '#shared/agent-api/metrics.ts';
import type { UpdateStatus } from '#shared/agent-api/update-status.ts';
import { messageOf } from '#shared/errors.ts';
import { refuseSecretsInClear } from '#shared/http/plain-refusal.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import type { Enrolment } from '#shared/identity/enrolment.ts';
import type { Identity } from '#shared/identity/identity-key.ts';
import { type Loop, startLoop } from '#shared/loop.ts';
import { runCommand } from '#shared/run-command.ts';
import { createTurns } from '#shared/service-manager/turns.ts';
import type { Vitals } from '#shared/service-manager/vitals.ts';
import {
  CERTIFICATE_INTERVAL_MS,
  type CertificateJob,
  createCertificateJob,
} from '#shared/tls/certificate.job.ts';
import type { CertificateSource } from '#shared/tls/listener-certificate.ts';
import { type Auth, registerAuth } from './auth/auth.ts';
import { createRunChild } from './backups/bounded-child.ts';
import { registerOperationRoutes } from './backups/operation.routes.ts';
import { createOperationService } from './backups/operation.service.ts';
import type { PodHold } from './backups/pod-hold.ts';
import { createRestic } from './backups/restic.ts';
import { createResticCgroup } from './backups/restic-cgroup.ts';
import { createCardChallenges } from './challenges/card-challenges.ts';
import { registerChallengeRoutes } from './challenges/challenge.routes.ts';
import { createChallengeService } from './challenges/challenge.service.ts';
import { createGpuProof } from './challenges/gpu-proof.ts';
import { proofThreads } from './challenges/proof-threads.ts';
import { timedEngine } from './docker/timed-engine.ts';
import { registerEgressCheckRoutes } from './egress-check/egress-check.routes.ts';
import { createEgressCheckService, tryConnection } from './egress-check/egress-check.service.ts';
import { PROC } from './exec/container-process.ts';
import { registerTerminalRoutes } from './exec/terminal.routes.ts';
import { createTerminalHost } from './exec/terminal-host.ts';
import type { GpuDriver } from './gpu/gpu-driver.ts';
import { countOutside } from './gpu/outside-processes.ts';
import { createDiskPercent } from './hardware/disk-percent.ts';
import type { HostProbe } from './hardware/host-probe.ts';
import type { ReadHostSources } from './hardware/host-sources.ts';
import { registerInventoryRoutes } from './hardware/inventory.routes.ts';
import { createInventoryService } from './hardware/inventory.service.ts';
import { signAnswers } from './identity/answer-signing.ts';
import { registerIdentityRoutes } from './identity/identity.routes.ts';
import { registerImageCheckRoutes } from './images/image-check.routes.ts';
import { createImageChecks } from './images/image-check.service.ts';
import { IMAGE_GC_INTERVAL_MS } from './images/image-gc.job.ts';
import { registerLogRoutes } from './logs/log.routes.ts';
import { createLogService } from './logs/log.service.ts';
import type { GpuMetrics } from './metrics/gpu-metrics.ts';
import { createMetricsJob } from './metrics/metrics.job.ts';
import { registerMetricsRoutes } from './metrics/metrics.routes.ts';
import type { Metrics } from './metrics/metrics.ts';
import { registerSampleRoutes } from './metrics/sample.routes.ts';
import { createSamples } from './metrics/samples.ts';
import { FIREWALL_INTERVAL_MS } from './network/firewall.job.ts';
import { registerNotebookRoutes } from './notebook/notebook.routes.ts';
import { NOTEBOOK_INTERVAL_MS } from './notebook/notebook.service.ts';
import { DISK_INTERVAL_MS } from './pods/disk-watch.job.ts';
import { createLifetimes, LIFETIME_INTERVAL_MS } from './pods/lifetime.job.ts';
import { ORPHANS_INTERVAL_MS } from './pods/orphans.job.ts';
import { registerPodRoutes } from './pods/pod.routes.ts';
import { SETTLING_MS } from './pods/pod.trial.ts';
import { createPodCore, type PodCore, type PodCorePorts } from './pods/pod-core.ts';
import { RECONCILE_INTERVAL_MS } from './pods/reconcile.job.ts';
import { registerPortCheckRoutes } from './ports/port-check.routes.ts';
import { createPortCheckService } from './ports/port-check.service.ts';
import { registerSpeedTestRoutes } from './speed-test/speed-test.routes.ts';
import { createSpeedTests } from './speed-test/speed-test.service.ts';
import { OWN_SSHD_INTERVAL_MS } from './ssh/own-sshd.job.ts';
import { POD_USER } from './ssh/ssh.service.ts';
import { problemOfStore } from './store/store-probe.ts';
import { createUpdateStore } from './store/update.store.ts';
import { createReadiness } from './system/readiness.ts';
import { registerSystemRoutes } from './system/system.routes.ts';
import { probeProblem, runningPods, workUnderWay } from './updates/host-work.ts';
import {
  createUpdateService,
  UPDATE_PASS_MS,
  type UpdatePorts,
  type UpdateService,
} from './updates/update.service.ts';
import { noUpdates } from './updates/update.status.ts';
import { createFileUsage } from './usage/file-usage.ts';
import { createKernelFiles } from './usage/kernel-files.ts';
import { createPodUsage } from './usage/pod-usage.ts';
import { registerVerifyRoutes } from './verify/verify.routes.ts';
import {
  createVerifyService,
  GPU_RUNTIME_INTERVAL_MS,
  type VerifyService,
} from './verify/verify.service.ts';
import { registerVolumeRoutes } from './volumes/volume.routes.ts';
import { VOLUME_WATCH_INTERVAL_MS } from './volumes/volume-watch.job.ts';

export type AgentPorts = Omit<
  PodCorePorts,
  | 'onFirewallDrift'
  | 'onOrphans'
  | 'onImageRemoved'
  | 'onPulled'
  | 'onLaunchStep'
  | 'onOom'
  | 'onReconciled'
  | 'diskPercent'
> & {
  hostProbe: HostProbe;
  hostSources: ReadHostSources;
  /** Who may call. */
  auth: Auth;
  metrics: Metrics;
  identity: Identity;
  /** Null until the provider has enrolled the identity's key. */
  readEnrolment(): Enrolment | null;
  /** Null: the listener is plain. */
  certificates: CertificateSource | null;
  /** Whether metrics have a plain listener of their own, and none on the main one. */
  separateMonitoring: boolean;
  gpuMetrics: GpuMetrics;
  /** The host's own name. */
  hostname: string;
  /** For what is written to be removed again: drills, challenges. Made when needed. */
  scratchFolder: string;
  /** Null: this agent is not to update itself. */
  updates: UpdatePorts | null;
  /** Name of the image that cards prove their work with, where it was built. */
  gpuProofImage: string;
};

export type Agent = ReturnType<typeof createAgent>;

const BODY_LIMIT_BYTES = 1024 * 1024;
/** Nothing there takes a body. */
const MONITORING_BODY_LIMIT_BYTES = 1_024;

/** Two agents may live in one process: nothing here is shared between calls. */
export function createAgent(given: AgentPorts) {
  const { clock, log, metrics, gpuDriver } = given;
  const ports = { ...given, engine: timedEngine(given.engine, clock, metrics.engineCalled) };
  const core = createPodCore({
    ...ports,
    onFirewallDrift: metrics.firewallDrifted,
    onImageRemoved: metrics.removedImage,
    diskPercent: createDiskPercent(clock, ports.engine),
    onOrphans: metrics.setOrphans,
    onPulled: metrics.pulledBytes,
    onLaunchStep: metrics.launched,
    onOom: (podId) => metricsJob.noteOom(podId),
    onReconciled: (tookMs, failure) => metrics.reconciled(tookMs, failure, clock.now()),
  });
  const { records, leases, reconcile, supervisor } = core;
  const logs = createLogService({
    clock,
    engine: ports.engine,
    podLogSource: async (podId) => {
      const row = records.get(podId);
      if (row === null) return null;
      const buildKey = core.buildKeyOf(row);
      return { containerId: row.container_id, phase: row.phase, buildKey };
    },
    builds: core.imageCore.logs,
    onFrames: metrics.logged,
  });
  const terminals = createTerminalHost({
    ...ports,
    terminalPod(podId) {
      const row = records.get(podId);
      if (row === null || row.phase === 'removed') return null;
      return { containerId: row.phase === 'running' ? row.container_id : null, user: POD_USER };
    },
  });
  const verify = createVerifyService({
    ...ports,
    gpu: gpuDriver,
    ensureBuiltinImage: core.ensureBuiltinImage,
  });

  const updates = updateServiceOf(ports, core, verify);
  const updateStatus = () => updates?.status() ?? noUpdates();
  const files = createFileUsage(createKernelFiles());
  const podUsage = createPodUsage({ ...ports, files });
  const samples = createSamples({ ...ports, records, podUsage });

  const operations = createOperationService({
    ...ports,
    store: core.operations,
    ...operationSubjects(core),
    restic: createRestic({
      clock,
      runChild: createRunChild(clock),
      program: 'restic',
      cgroup: createResticCgroup({ name: `podwright-backups-${ports.executorId}`, log }),
      isRoot: process.getuid?.() === 0,
    }),
    runCommand,
    settlingMs: SETTLING_MS,
    onEnded(row) {
      metrics.operationEnded(row);
      metricsJob.noteOperation(row);
    },
  });
  const metricsJob = createMetricsJob({
    ...{ ...ports, records, leases, samples },
    operations: core.operations,
    xids: core.gpuXids,
    cordonedUuids: () =>
      (samples.gpus()?.reading.devices ?? [])
        .filter((device) => core.gpuCordons.of(device) !== null)
        .map(({ uuid }) => uuid),
    writtenBytes: core.diskWatch.bytesOf,
    pullOf: core.pulls.presentOf,
    standing: () => ({
      ports: {
        size: ports.portRange.last - ports.portRange.first + 1,
        free: core.portLeases.freeCount(),
      },
      logSubscribers: logs.followers(),
      ssh: ports.gatewayLink.traffic(),
      diskQuota: core.diskQuota.found(),
      simulated: gpuDriver.kind === 'simulated',
      firewallEnforced: core.firewall.enforced(),
      updateState: updateStatus().state,
    }),
  });

  const isRented = () => records.list().some(({ phase }) => phase !== 'removed');
  const gpuProof = createGpuProof({ ...ports, gpu: gpuDriver, image: ports.gpuProofImage });
  const challenges = createChallengeService({
    ...ports,
    cards: createCardChallenges({ ...ports, gpuProof }),
    workers: ports.host.cpuCores,
    folder: ports.scratchFolder,
    isRented,
    proof: proofThreads,
  });
  const portChecks = createPortCheckService({
    ...ports,
    ...{ range: ports.portRange, isLeased: core.portLeases.isLeased, isRented },
  });
  const egressChecks = createEgressCheckService({ ...ports, tryConnection });
  const speedTests = createSpeedTests({ ...ports, isRented });
  const lifetimes = createLifetimes({ records, service: core.service, clock, log });
  const stopping = new AbortController();

  const { certificates } = ports;
  const certificate = certificates === null ? null : createCertificateJob(certificates, log);
  const server = createServer(ports, certificate);
  registerPodRoutes(server, core.service);
  registerOperationRoutes(server, operations);
  registerVolumeRoutes(server, { volumes: core.lastingVolumes, operations });
  registerNotebookRoutes(server, { notebooks: core.notebooks, pods: core.service });
  registerLogRoutes(server, { logs });
  registerTerminalRoutes(server, terminals);
  registerVerifyRoutes(server, { verify });
  registerChallengeRoutes(server, { challenges, stopping: stopping.signal });
  registerPortCheckRoutes(server, { portChecks, stopping: stopping.signal });
  registerEgressCheckRoutes(server, { egressChecks });
  registerImageCheckRoutes(server, { imageChecks: createImageChecks(ports) });
  registerSpeedTestRoutes(server, { speedTests, stopping: stopping.signal });
  registerSampleRoutes(server, { samples });
  const { random } = ports;
  const monitoring = ports.separateMonitoring
    ? createHttpServer({ log, clock, random, bodyLimitBytes: MONITORING_BODY_LIMIT_BYTES })
    : null;
  registerHostRoutes({ server, monitoring }, ports, core, {
    gpuRuntimeTried: verify.gpuRuntimeTried,
    updateStatus,
  });

  let loops: Loop[] = [];
  const turns = createTurns(clock);
  let events = Promise.resolve();
  let gateway: { stop(): Promise<void> } | null = null;

  function loop(name: string, intervalMs: number, run: () => Promise<unknown>): Loop {
    const onError = (error: unknown) => log.error({ err: error }, `${name} failed`);
    return startLoop({ clock, intervalMs, run: async () => void (await run()), onError });
  }

  return {
    server,
    /** Metrics and health, where they are separate. Listening is the caller's. */
    monitoring,
    /** What the routes call, without HTTP: for tests. */
    pods: core.service,
    core,
    samples,
    metricsJob,
    operations,
    /** How the reconcile loop, the store and the engine are, once started. */
    vitals: async (): Promise<Vitals> => ({
      engine: await ports.engine.ping().then(
        () => 'answers',
        () => 'away',
      ),
      storeProblem: problemOfStore(ports.database, clock.now()),
      sinceTurnMs: turns.sinceMs(),
    }),
    /** Starts the loops; never waits for the engine. Listening is the caller's. */
    start(): void {
      const probesLeft = (error: unknown) =>
        log.warn({ detail: messageOf(error) }, 'probes of an earlier run may be left');
      verify.removeStaleProbes().catch(probesLeft);
      const proofsLeft = (error: unknown) =>
        log.warn({ detail: messageOf(error) }, 'proofs of an earlier run may be left');
      Promise.all([challenges.removeLeftovers(), gpuProof.removeLeftovers()]).catch(proofsLeft);
      const running = records.list().flatMap(({ container_id: id }) => (id === null ? [] : [id]));
      const shellsLeft = (error: unknown) =>
        log.warn({ detail: messageOf(error) }, 'shells of an earlier run may be left');
      terminals.endLeftovers(running).catch(shellsLeft);
      const relist = loop('reconcile', RECONCILE_INTERVAL_MS, () => turns.noted(reconcile.runOnce));
      loops = [
        loop('firewall', FIREWALL_INTERVAL_MS, () => core.firewall.runOnce()),
        relist,
        loop('lifetimes', LIFETIME_INTERVAL_MS, () => lifetimes.runOnce()),
        loop('orphans', ORPHANS_INTERVAL_MS, () => core.orphans.runOnce()),
        loop('image clean-up', IMAGE_GC_INTERVAL_MS, () => core.imageCore.gc.runOnce()),
        loop('notebooks', NOTEBOOK_INTERVAL_MS, () => core.notebooks.runOnce()),
        loop('own sshd', OWN_SSHD_INTERVAL_MS, () => core.ownSshd.runOnce()),
        loop('disk watch', DISK_INTERVAL_MS, () => core.diskWatch.runOnce()),
        loop('volume watch', VOLUME_WATCH_INTERVAL_MS, () => core.volumeWatch.runOnce()),
        ...core.gpuWork.map(({ name, intervalMs, run }) => loop(name, intervalMs, run)),
        loop('gpu runtime', GPU_RUNTIME_INTERVAL_MS, () => verify.tryGpuRuntime()),
        loop('metrics', SAMPLE_INTERVAL_MS, () => metricsJob.runOnce()),
        ...(updates === null ? [] : [loop('update', UPDATE_PASS_MS, () => updates.runOnce())]),
        ...(certificate === null
          ? []
          : [loop('certificate', CERTIFICATE_INTERVAL_MS, () => certificate.runOnce(server))]),
      ];
      operations.start();
      core.ssh.publish();
      gateway = ports.gatewayLink.follow(() => core.ssh.exchangeTakenPorts());
      let isFirst = true;
      events = reconcile.followEvents(stopping.signal, () => {
        if (!isFirst) metrics.eventsReopened();
        isFirst = false;
        relist.wake();
      });
    },
    /** Ends requests, loops and workers; pods keep running. */
    async stop(): Promise<void> {
      stopping.abort();
      logs.close();
      await terminals.close();
      await Promise.all([server.close(), monitoring?.close()]);
      await operations.stop();
      await Promise.all([...loops.map((each) => each.stop()), events, supervisor.stop()]);
      await core.notebooks.stop();
      await gateway?.stop();
      core.ssh.close();
      metrics.close();
      ports.kernelLog.close();
    },
  };
}

/** Null where this agent is not to update itself. */
function updateServiceOf(
  { updates, clock, random, log, executorId, database, gpuDriver }: AgentPorts,
  { records, operations }: PodCore,
  verify: Pick<VerifyService, 'verify'>,
): UpdateService | null {
  if (updates === null) return null;
  return createUpdateService({
    ...{ ...updates, clock, random, log, executorId },
    store: createUpdateStore(database),
    busyWith: () => workUnderWay(records.list(), operations.unfinished(1)),
    runningPods: () => runningPods(records.list()),
    async tryContainer() {
      const { devices } = await gpuDriver.read();
      const found = await verify.verify({ gpu_uuids: devices.map(({ uuid }) => uuid) });
      return probeProblem(found);
    },
  });
}

/** What backups and restores are about: a pod, or a volume's copy, in which nothing runs. */
function operationSubjects({ records, lastingVolumes, hold, dataRootsOf }: PodCore) {
  const { knows } = lastingVolumes;
  return {
    hold: {
      wake: (id: string) => (knows(id) ? undefined : hold.wake(id)),
      standingOf: async (id: string) => (knows(id) ? 'stopped' : hold.standingOf(id)),
    } satisfies PodHold,
    dataRootsOf: (id: string) => (knows(id) ? lastingVolumes.rootsOf(id) : dataRootsOf(id)),
    isGone: (id: string) =>
      knows(id) ? lastingVolumes.isGone(id) : records.get(id)?.desired !== 'running',
  };
}

function createServer(ports: AgentPorts, certificate: CertificateJob | null): HttpServer {
  const { log, clock, random, auth, identity, executorId } = ports;
  const shown = () => certificate?.shown() ?? null;
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    believesTraces: true,
    verifyBody: auth.verifyBody,
    tls: shown(),
  });
  registerAuth(server, auth);
  refuseSecretsInClear(server);
  signAnswers(server, identity, executorId);
  registerIdentityRoutes(server, { ...ports, shown });
  return server;
}

/** What is found out elsewhere of the host. */
type HostKnowledge = { gpuRuntimeTried(): boolean | null; updateStatus(): UpdateStatus };

/** What the host has and how it is. */
function registerHostRoutes(
  { server, monitoring }: { server: HttpServer; monitoring: HttpServer | null },
  ports: AgentPorts,
  { gpuLeases, gpuCordons, portLeases, records, firewall, diskQuota, orphans }: PodCore,
  { gpuRuntimeTried, updateStatus }: HostKnowledge,
): void {
  const { clock, executorId, engine, gpuDriver, metrics } = ports;
  const inventory = createInventoryService({
    clock,
    executorId,
    engine,
    gpu: gpuDriver,
    host: ports.hostProbe,
    hostSources: ports.hostSources,
    gpuStanding: (device, pids) => {
      const holder = gpuLeases.holderOf(device.uuid);
      return {
        leased_by: holder,
        lease_state: gpuLeases.stateOf(device.uuid),
        cordoned: gpuCordons.shown(device),
        outside_processes: countOutside(PROC, {
          pids,
          containerId: holder === null ? null : (records.get(holder)?.container_id ?? null),
        }),
      };
    },
    ports: () => ({ ...ports.portRange, free: portLeases.freeCount() }),
    isolation: () => ({
      firewall: firewall.enforced() ? 'enforced' : 'unavailable',
      disk_quota: diskQuota.found(),
    }),
    orphans: orphans.list,
    gpuRuntimeTried,
    updateStatus,
    onCollected: metrics.collected,
  });
  registerInventoryRoutes(server, { inventory });
  registerMetricsRoutes(monitoring ?? server, { clock, metrics, isOwn: monitoring !== null });
  const system = {
    executorId,
    startedMs: clock.now(),
    simulated: gpuDriver.kind === 'simulated',
    updateStatus,
    readiness: createReadiness(clock, {
      docker: { required: true, check: () => engine.ping().then(() => 'answers') },
      database: { required: true, check: async () => `${records.list().length} pods` },
      firewall: { required: firewall.required, check: () => firewall.describe() },
      gpu: { required: false, check: () => describeGpus(gpuDriver) },
      pods: {
        required: false,
        check: async () => describeOddities(records, orphans.list().length),
      },
    }),
  };
  registerSystemRoutes(server, system);
  if (monitoring !== null) registerSystemRoutes(monitoring, system);
}

/** A few words for /readyz; throws when something is there that only a person or a signed removal can settle. */
function describeOddities(records: PodCore['records'], orphans: number): string {
  let corrupt = 0;
  records.list(() => {
    corrupt += 1;
  });
  if (corrupt + orphans === 0) return 'all accounted for';
  throw new Error(`${corrupt} corrupt rows, ${orphans} objects in the engine without a pod`);
}

/** A few words for /readyz; throws when the GPUs cannot be read. */
async function describeGpus(driver: GpuDriver): Promise<string> {
  const { devices, error } = await driver.read();
  if (error !== null) throw new Error(error);
  return `${devices.length} ${driver.kind}`;
}
