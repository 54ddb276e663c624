/** The gateway: a door per pod of the agent's snapshot, and how each was found, for the agent to read. */
import { localHost } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createHeartbeat, type Liveness } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type Mark, SESSION_MARK } from '../access/exec/container-process.ts';
import {
  type GatewayPod,
  type GatewayPodStatus,
  GatewaySnapshot,
  type GatewayStatus,
  readWhole,
  statusPathOf,
  watchFile,
  writeWhole,
} from '../access/ssh/gateway-files.ts';
import type { ExecEngine } from '../containers/engine/exec.ts';
import { createFailureLimit } from '../identity/auth.ts';
import { BOUNDS, type Bounds, countTraffic, createSeats } from './limits.ts';
import { createProbeKey, probeLogin } from './probe.ts';
import { createPodDoor, type DoorPorts, type PodDoor } from './ssh-listener.ts';

export type GatewayPorts = {
  snapshotPath: string;
  host: string;
  pid: number;
  engine: ExecEngine;
  /** Ends what sessions of a gateway that was killed have left in these containers; how many there were. */
  hangUpLeftovers(marks: readonly Mark[], containerIds: readonly string[]): number;
  clock: Clock;
  random: Random;
  log: Log;
  /** Other than the usual ones, where those would take too long to reach. */
  bounds?: Bounds;
};

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 10_000;
/** What takes no notice of a hang-up is left running when the gateway ends. */
const STOP_WITHIN_MS = 1_000;

type Served = {
  door: PodDoor;
  listening: boolean;
  status: GatewayPodStatus;
  leaving: AbortController;
};

/** Serves until `stop`; a snapshot that cannot be read leaves everything as it is. */
export function startGateway(ports: GatewayPorts) {
  const { snapshotPath, clock, log, bounds = BOUNDS } = ports;
  const probeKey = createProbeKey(ports.random);
  const counted = countTraffic({ limit: createFailureLimit(clock), seats: createSeats(bounds) });
  let told = '';
  const doorPorts: DoorPorts = {
    ...ports,
    limit: counted.limit,
    track(work) {
      running.add(work);
      void work.finally(() => running.delete(work));
    },
    seats: counted.seats,
    bounds,
    probeKey: probeKey.authorized,
  };
  const served = new Map<string, Served>();
  const looks = createHeartbeat(clock);
  const running = new Set<Promise<unknown>>();
  let isLeaving = false;

  function report(): void {
    const pods = [...served].map(([id, { status }]) => [id, status] as const);
    const traffic = counted.traffic();
    const status: GatewayStatus = { pid: ports.pid, pods: Object.fromEntries(pods), traffic };
    told = JSON.stringify(traffic);
    writeWhole(statusPathOf(snapshotPath), status);
  }

  function found(entry: Served, change: Partial<GatewayPodStatus>): void {
    const next = { ...entry.status, ...change };
    const moved = next.ready !== entry.status.ready;
    entry.status = { ...next, since_ms: moved ? clock.now() : entry.status.since_ms };
    report();
  }

  function open(pod: GatewayPod): void {
    const entry: Served = {
      door: createPodDoor(doorPorts, pod),
      listening: false,
      leaving: new AbortController(),
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

  /** Listens, then logs in until it works; begun again with every container. */
  async function makeReady(id: string, entry: Served): Promise<void> {
    const signal = entry.leaving.signal;
    let pauseMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      const container_id = entry.door.pod().container_id;
      const problem = await tryOnce(entry, container_id);
      if (signal.aborted) return;
      if (entry.door.pod().container_id === container_id) {
        found(entry, { container_id, ...problem, ready: problem === null, ...(problem ?? GOOD) });
        if (problem === null || problem.message === NOT_RUNNING) return;
        log.debug({ pod_id: id, detail: problem.message }, 'not ready');
      }
      await clock.sleep(pauseMs, signal).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, LAST_RETRY_MS);
    }
  }

  async function tryOnce(entry: Served, containerId: string | null): Promise<Problem | null> {
    try {
      if (!entry.listening) await entry.door.listen();
      entry.listening = true;
    } catch (error) {
      const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
      return { message: messageOf(error), port_taken: taken };
    }
    if (containerId === null) return { message: NOT_RUNNING, port_taken: false };
    const host = localHost(ports.host);
    const message = await probeLogin(probeKey, { host, port: entry.door.port, clock });
    return message === null ? null : { message, port_taken: false };
  }

  function close(id: string, { door, leaving }: Served): void {
    served.delete(id);
    leaving.abort();
    door.close();
  }

  function update(pod: GatewayPod, entry: Served): void {
    const before = entry.door.pod().container_id;
    entry.door.update(pod);
    if (before === pod.container_id) return;
    found(entry, { ready: false, container_id: null, message: NOT_RUNNING });
    entry.leaving.abort();
    entry.leaving = new AbortController();
    void makeReady(pod.id, entry);
  }

  function look(): void {
    if (isLeaving) return;
    if (JSON.stringify(counted.traffic()) !== told) report();
    const snapshot = readWhole(snapshotPath, GatewaySnapshot);
    if (snapshot === null) return;
    const wanted = new Map(snapshot.pods.map((pod) => [pod.id, pod]));
    let changed = false;
    for (const [id, entry] of served) {
      const pod = wanted.get(id);
      const same = pod?.port === entry.door.port && pod.host_key === entry.door.pod().host_key;
      if (pod !== undefined && same) update(pod, entry);
      else close(id, entry);
      changed ||= !same;
    }
    for (const [id, pod] of wanted) if (!served.has(id)) open(pod);
    if (changed) report();
  }

  /** Before anybody is let in, whose session could be taken for one of them. */
  function endLeftovers(): void {
    const pods = readWhole(snapshotPath, GatewaySnapshot)?.pods ?? [];
    const marks = pods.map(({ id }) => ({ name: SESSION_MARK, value: id }) as const);
    const containerIds = pods.flatMap(({ container_id }) => container_id ?? []);
    const count = ports.hangUpLeftovers(marks, containerIds);
    if (count > 0) log.info({ count }, 'hung up on sessions of a gateway that was killed');
  }

  endLeftovers();
  report();
  const watching = watchFile({
    path: snapshotPath,
    clock,
    look: () => looks.beatAfter(async () => look()),
    onError: (error) => log.error({ err: error }, 'the snapshot could not be followed'),
  });

  return {
    /** How following the snapshot goes. */
    vitals: (): Liveness => ({
      ...{ heartbeatAgeMs: looks.ageMs(), storeProblem: null, engine: 'unused' },
    }),
    /** Lets nobody in any more and answers true, unless somebody is logged in. */
    closeIfFree(): boolean {
      if (counted.traffic().sessions > 0) return false;
      isLeaving = true;
      for (const [id, entry] of served) close(id, entry);
      return true;
    },
    /** Ends every session, and hangs up on what ran in them. */
    async stop(): Promise<void> {
      await watching.stop();
      for (const [id, entry] of served) close(id, entry);
      report();
      await Promise.race([Promise.allSettled(running), clock.sleep(STOP_WITHIN_MS)]);
    },
  };
}

type Problem = Pick<GatewayPodStatus, 'message' | 'port_taken'>;

const GOOD: Problem = { message: '', port_taken: false };
const NOT_RUNNING = 'the pod does not run';
