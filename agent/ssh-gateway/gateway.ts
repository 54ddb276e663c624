/** The gateway: one SSH listener for each pod in the agent's snapshot, and a status report for the agent. */
import { localHost } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createHeartbeat, type Liveness } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type Mark, SESSION_MARK } from '../access/exec/container-process.ts';
import { createStartPace } from '../access/exec/start-pace.ts';
import {
  type GatewayPod,
  type GatewayPodStatus,
  GatewaySnapshot,
  type GatewayStatus,
  readJsonFile,
  statusPathOf,
  watchFile,
  writeJsonFile,
} from '../access/ssh/gateway-files.ts';
import type { ExecEngine } from '../containers/engine/exec.ts';
import { createFailureLimit } from '../identity/auth.ts';
import { BOUNDS, type Bounds, countTraffic, createConcurrencyLimits } from './limits.ts';
import { createProbeKey, probeLogin } from './probe.ts';
import { createSshListener, type SshListener, type SshListenerPorts } from './ssh-listener.ts';

export type GatewayPorts = {
  snapshotPath: string;
  host: string;
  pid: number;
  engine: ExecEngine;
  /** Sends SIGHUP to sessions that a killed gateway left in these containers; returns their number. */
  hangUpLeftovers(marks: readonly Mark[], containerIds: readonly string[]): number;
  clock: Clock;
  random: Random;
  log: Log;
  /** Default: BOUNDS. */
  bounds?: Bounds;
};

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 10_000;
/** Maximum wait on `stop`. Processes that ignore SIGHUP keep running after the gateway exits. */
const STOP_WITHIN_MS = 1_000;

type Served = {
  listener: SshListener;
  isListening: boolean;
  status: GatewayPodStatus;
  /** Aborts when the pod's container changes or the listener closes. */
  closing: AbortController;
};

/** Serves until `stop`. An unreadable snapshot changes nothing. */
export function startGateway(ports: GatewayPorts) {
  const { snapshotPath, clock, log, bounds = BOUNDS } = ports;
  const probeKey = createProbeKey(ports.random);
  const counters = countTraffic({
    limit: createFailureLimit(clock),
    limits: createConcurrencyLimits(bounds, ports.random),
  });
  let reportedTraffic = '';
  const listenerPorts: SshListenerPorts = {
    ...ports,
    pace: createStartPace(clock),
    limit: counters.limit,
    track(work) {
      running.add(work);
      void work.finally(() => running.delete(work));
    },
    limits: counters.limits,
    bounds,
    probeKey: probeKey.authorized,
  };
  const served = new Map<string, Served>();
  const heartbeat = createHeartbeat(clock);
  const running = new Set<Promise<unknown>>();
  let isClosed = false;

  function report(): void {
    const pods = [...served].map(([id, { status }]) => [id, status] as const);
    const traffic = counters.traffic();
    const status: GatewayStatus = { pid: ports.pid, pods: Object.fromEntries(pods), traffic };
    reportedTraffic = JSON.stringify(traffic);
    writeJsonFile(statusPathOf(snapshotPath), status);
  }

  function recordStatus(entry: Served, change: Partial<GatewayPodStatus>): void {
    const next = { ...entry.status, ...change };
    const hasChanged = next.ready !== entry.status.ready;
    entry.status = { ...next, since_ms: hasChanged ? clock.now() : entry.status.since_ms };
    report();
  }

  function open(pod: GatewayPod): void {
    const entry: Served = {
      listener: createSshListener(listenerPorts, pod),
      isListening: false,
      closing: new AbortController(),
      status: {
        port: pod.port,
        container_id: null,
        ready: false,
        port_taken: false,
        message: 'not listening yet',
        since_ms: clock.now(),
      },
    };
    served.set(pod.id, entry);
    void makeReady(pod.id, entry);
  }

  /** Listens, then probes the login until it works; restarted for every new container. */
  async function makeReady(id: string, entry: Served): Promise<void> {
    const signal = entry.closing.signal;
    let pauseMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      const container_id = entry.listener.pod().container_id;
      const problem = await tryOnce(entry, container_id);
      if (signal.aborted) return;
      if (entry.listener.pod().container_id === container_id) {
        recordStatus(entry, {
          container_id,
          ...problem,
          ready: problem === null,
          ...(problem ?? NO_PROBLEM),
        });
        if (problem === null || problem.message === NOT_RUNNING) return;
        log.debug({ pod_id: id, detail: problem.message }, 'pod not ready for SSH');
      }
      await clock.sleep(pauseMs, signal).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, LAST_RETRY_MS);
    }
  }

  async function tryOnce(entry: Served, containerId: string | null): Promise<Problem | null> {
    try {
      if (!entry.isListening) await entry.listener.listen();
      entry.isListening = true;
    } catch (error) {
      const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
      return { message: messageOf(error), port_taken: taken };
    }
    if (containerId === null) return { message: NOT_RUNNING, port_taken: false };
    const host = localHost(ports.host);
    const message = await probeLogin(probeKey, { host, port: entry.listener.port, clock });
    return message === null ? null : { message, port_taken: false };
  }

  function close(id: string, { listener, closing }: Served): void {
    served.delete(id);
    closing.abort();
    listener.close();
  }

  function update(pod: GatewayPod, entry: Served): void {
    const before = entry.listener.pod().container_id;
    entry.listener.update(pod);
    if (before === pod.container_id) return;
    recordStatus(entry, { ready: false, container_id: null, message: NOT_RUNNING });
    entry.closing.abort();
    entry.closing = new AbortController();
    void makeReady(pod.id, entry);
  }

  function applySnapshot(): void {
    if (isClosed) return;
    if (JSON.stringify(counters.traffic()) !== reportedTraffic) report();
    const snapshot = readJsonFile(snapshotPath, GatewaySnapshot);
    if (snapshot === null) return;
    const wanted = new Map(snapshot.pods.map((pod) => [pod.id, pod]));
    let changed = false;
    for (const [id, entry] of served) {
      const pod = wanted.get(id);
      const same =
        pod?.port === entry.listener.port && pod.host_key === entry.listener.pod().host_key;
      if (pod !== undefined && same) update(pod, entry);
      else close(id, entry);
      changed ||= !same;
    }
    for (const [id, pod] of wanted) if (!served.has(id)) open(pod);
    if (changed) report();
  }

  /**
   * Ends the sessions of a killed gateway. Runs before any login, because a new session could be mistaken for a
   * leftover.
   */
  function endLeftovers(): void {
    const pods = readJsonFile(snapshotPath, GatewaySnapshot)?.pods ?? [];
    const marks = pods.map(({ id }) => ({ name: SESSION_MARK, value: id }) as const);
    const containerIds = pods.flatMap(({ container_id }) => container_id ?? []);
    const count = ports.hangUpLeftovers(marks, containerIds);
    if (count > 0) log.info({ count }, 'ended leftover sessions of a killed gateway');
  }

  endLeftovers();
  report();
  const watching = watchFile({
    path: snapshotPath,
    clock,
    onChange: () => heartbeat.beatAfter(async () => applySnapshot()),
    onError: (error) => log.error({ err: error }, 'snapshot could not be applied'),
  });

  return {
    /** Liveness of the loop that follows the snapshot. */
    liveness: (): Liveness => ({
      heartbeatAgeMs: heartbeat.ageMs(),
      storeProblem: null,
      engine: 'unused',
    }),
    /** Closes all listeners and returns true, unless a client is logged in. */
    closeIfIdle(): boolean {
      if (counters.traffic().sessions > 0) return false;
      isClosed = true;
      for (const [id, entry] of served) close(id, entry);
      return true;
    },
    /** Ends every session and sends SIGHUP to its processes. */
    async stop(): Promise<void> {
      await watching.stop();
      for (const [id, entry] of served) close(id, entry);
      report();
      await Promise.race([Promise.allSettled(running), clock.sleep(STOP_WITHIN_MS)]);
    },
  };
}

type Problem = Pick<GatewayPodStatus, 'message' | 'port_taken'>;

const NO_PROBLEM: Problem = { message: '', port_taken: false };
const NOT_RUNNING = 'the pod is not running';
