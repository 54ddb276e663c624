/** Facts that a plan depends on besides the pod's row, and relations between a pod's containers and its row. */

import type { Clock } from '#shared/runtime/clock.ts';
import { type ContainerState, LABELS } from '../containers/engine/engine.ts';
import type { EngineHealth, Outage } from '../containers/engine/engine-health.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import type { PortService } from '../leases/port.service.ts';
import type { PodRow } from './pod.store.ts';
import { specsInUse } from './pod-generations.ts';
import { launchHash, publishedPorts } from './pod-row.ts';
import type { PodSsh } from './pod-ssh.ts';

/**
 * Result of the SSH gateway's test login.
 * - `none`: the gateway does not serve this pod; `unknown`: it has not reported on the present container
 * - `works`: a login ran a command; `fails`: no login has succeeded yet
 */
export type LoginState =
  | { kind: 'none' | 'unknown' | 'works' }
  | { kind: 'fails'; message: string };

export type PlanFacts = {
  nowMs: number;
  /** Id of the host's present boot; empty if unknown. Containers of an earlier boot did not exit by themselves. */
  bootId: string;
  /** The engine's last outage. Containers that ended in it were ended by the engine's restart. */
  outage: Outage;
  /** Start of this agent process. Time before it does not count against a pod's deadlines. */
  watchingSinceMs: number;
  /** Value of the spec-hash label of a container created from the present spec and ports. */
  launchHash: string;
  login: LoginState;
  /** True: the pod holds ports or GPUs that none of its generations needs. */
  surplusLeases: boolean;
  /** True: the pod is stopped by its owner or a restore exchanges its data. No container may run. */
  paused: boolean;
};

export type ExitCause = 'itself' | 'host_reboot' | 'engine_restart';

/** Longest backoff. A retry further in the future means that the host's clock was set back. */
export const LONGEST_BACKOFF_MS = 5 * 60_000;
/** Exit code of a container whose process was killed. */
const KILLED_EXIT_CODE = 137;
/**
 * Wait for the report of an out-of-memory kill after an exit. An engine without load reports it about 10 ms before the
 * exit.
 */
export const OOM_REPORT_MS = 500;
/** Interval for checking a container that the engine is removing. */
export const REMOVING_POLL_MS = 500;

/** True if the container was created from the present generation, spec and ports. */
export function isWanted(container: ContainerState, row: PodRow, facts: PlanFacts): boolean {
  return (
    isOfGeneration(container, row.generation) &&
    container.labels[LABELS.specHash] === facts.launchHash
  );
}

/** False for a dead container, which can be neither started nor trusted. */
export function isOfGeneration(container: ContainerState, generation: number): boolean {
  return container.status !== 'dead' && container.labels[LABELS.generation] === String(generation);
}

/**
 * True if the container has processes. The agent never pauses or restarts containers, but paused and restarting ones
 * have processes too.
 */
export function isAlive(container: ContainerState): boolean {
  return ['running', 'paused', 'restarting'].includes(container.status);
}

/** Returns true if no process of the container has run. A failed start leaves an exit code, too. */
export function neverRan(container: ContainerState): boolean {
  return container.status === 'created' || container.startError !== '';
}

/** Returns what ended a container. Compares boot ids instead of times, because the clock may have been set. */
export function causeOfExit(row: PodRow, container: ContainerState, facts: PlanFacts): ExitCause {
  const { bootId, outage } = facts;
  if (bootId !== '' && row.boot_id !== '' && row.boot_id !== bootId) return 'host_reboot';
  const endedInOutage =
    container.startedMs < outage.toMs &&
    container.finishedMs >= outage.fromMs &&
    container.finishedMs <= outage.toMs;
  return endedInOutage ? 'engine_restart' : 'itself';
}

/**
 * Time until which the exit is not recorded, because the engine may still report that the kernel killed the process for
 * its memory; null if there is nothing to wait for.
 */
export function oomReportUntilMs(
  { exitCode, oomKilled, finishedMs }: ContainerState,
  cause: ExitCause,
  nowMs: number,
): number | null {
  if (cause !== 'itself' || oomKilled || exitCode !== KILLED_EXIT_CODE) return null;
  // The absolute distance, because the clock may have been set back.
  return Math.abs(nowMs - finishedMs) < OOM_REPORT_MS ? finishedMs + OOM_REPORT_MS : null;
}

/** True if the row's next retry is in the future. */
export function retryIsAhead(row: PodRow, nowMs: number): boolean {
  if (row.next_retry_ms === null) return false;
  // A requested reboot starts without waiting for the retry.
  if (row.desired === 'running' && (row.phase !== 'backoff' || isRebooting(row))) return false;
  return row.next_retry_ms > nowMs && row.next_retry_ms - nowMs <= LONGEST_BACKOFF_MS;
}

/** True if a requested reboot is not complete. */
export function isRebooting(row: PodRow): boolean {
  return row.reboots_requested > row.reboots_done;
}

export type FactsOf = (row: PodRow) => PlanFacts;

/** Creates the source of facts. Call once at the start of the agent. */
export function createPodFacts(deps: {
  ports: PortService;
  gpuLeases: GpuLeases;
  ssh: Pick<PodSsh, 'loginOf'>;
  clock: Clock;
  bootId: string;
  health: Pick<EngineHealth, 'lastOutage'>;
  /** True while a restore exchanges the pod's data. */
  isPaused(podId: string): boolean;
}): FactsOf {
  const { ports, gpuLeases, ssh, clock, bootId, health } = deps;
  const watchingSinceMs = clock.now();

  function hasSurplus(row: PodRow): boolean {
    const specs = specsInUse(row);
    const isPortWanted = (port: number) => specs.some((spec) => spec.internal_ports.includes(port));
    const isGpuWanted = (uuid: string) => specs.some((spec) => spec.gpu_uuids.includes(uuid));
    return (
      !ports.portsOf(row.id).every(({ internal }) => isPortWanted(internal)) ||
      !gpuLeases.uuidsOf(row.id).every(isGpuWanted)
    );
  }

  return (row) => ({
    nowMs: clock.now(),
    bootId,
    outage: health.lastOutage(),
    watchingSinceMs,
    launchHash: launchHash(row.spec_hash, publishedPorts(row, ports.portsOf(row.id))),
    login: ssh.loginOf(row),
    surplusLeases: hasSurplus(row),
    paused: row.stopped === 1 || deps.isPaused(row.id),
  });
}
