/** What the containers of a pod, as just observed, are to its row. Pure. */

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
 * - `none`: the SSH gateway does not serve this pod; `unknown`: it has said nothing of the present container
 * - `works`: a login ran a command; `fails`: it did not, so far
 */
export type LoginState =
  | { kind: 'none' | 'unknown' | 'works' }
  | { kind: 'fails'; message: string };

/** What a plan rests on beside row and containers. */
export type PlanFacts = {
  nowMs: number;
  /** The host's present boot: what ran in another one did not stop by itself. Empty when not known. */
  bootId: string;
  /** When the engine was last away: what ended then was ended by its restart. */
  outage: Outage;
  /** Since when this agent looks after its pods: time in which nobody acted does not count against them. */
  watchingSinceMs: number;
  /** What the label of a container made from the present spec and ports says. */
  launchHash: string;
  login: LoginState;
  /** Ports or GPUs are leased that no generation of the pod asks for any more. */
  surplusLeases: boolean;
  /** It is to stand still, or its tree is being exchanged: nothing of it may run. */
  paused: boolean;
};

/** Whose doing the end of a container was. */
export type ExitCause = 'itself' | 'host_reboot' | 'engine_restart';

/** No backoff is longer; a retry further away means that the host's clock was set back. */
export const LONGEST_BACKOFF_MS = 5 * 60_000;
/** How soon to look again at a container that the engine is removing. */
export const REMOVING_POLL_MS = 500;

/** Made from the present generation, spec and ports. */
export function isWanted(container: ContainerState, row: PodRow, facts: PlanFacts): boolean {
  return (
    isOfGeneration(container, row.generation) &&
    container.labels[LABELS.specHash] === facts.launchHash
  );
}

/** A dead container can be neither started nor trusted: it is of none. */
export function isOfGeneration(container: ContainerState, generation: number): boolean {
  return container.status !== 'dead' && container.labels[LABELS.generation] === String(generation);
}

/** Paused and restarting are not our doing; the processes exist all the same. */
export function isAlive(container: ContainerState): boolean {
  return ['running', 'paused', 'restarting'].includes(container.status);
}

/** A start that failed leaves an exit code, but nothing has run. */
export function neverRan(container: ContainerState): boolean {
  return container.status === 'created' || container.startError !== '';
}

/** Why a container is not running any more. The boot's id counts and not its time: a clock that was set is no reboot. */
export function causeOfExit(row: PodRow, container: ContainerState, facts: PlanFacts): ExitCause {
  const { bootId, outage } = facts;
  if (bootId !== '' && row.boot_id !== '' && row.boot_id !== bootId) return 'host_reboot';
  const endedInOutage =
    container.startedMs < outage.toMs &&
    container.finishedMs >= outage.fromMs &&
    container.finishedMs <= outage.toMs;
  return endedInOutage ? 'engine_restart' : 'itself';
}

/** Whether the row's next try lies ahead. */
export function retryIsAhead(row: PodRow, nowMs: number): boolean {
  if (row.next_retry_ms === null) return false;
  // A reboot is an order to start now.
  if (row.desired === 'running' && (row.phase !== 'backoff' || isRebooting(row))) return false;
  return row.next_retry_ms > nowMs && row.next_retry_ms - nowMs <= LONGEST_BACKOFF_MS;
}

/** Whether a reboot was asked for that is not done. */
export function isRebooting(row: PodRow): boolean {
  return row.reboots_requested > row.reboots_done;
}

// MERGED agent/pods/plan-facts.ts: Gathers what a plan rests on beside a pod's row and containers.
export type FactsOf = (row: PodRow) => PlanFacts;

/** Time counts against pods from now on. */
export function createPodFacts(deps: {
  ports: PortService;
  gpuLeases: GpuLeases;
  ssh: Pick<PodSsh, 'loginOf'>;
  clock: Clock;
  /** The host's present boot. */
  bootId: string;
  health: Pick<EngineHealth, 'lastOutage'>;
  /** Whether a restore has the pod stand still. */
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
