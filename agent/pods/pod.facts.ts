/** Gathers what a plan rests on beside a pod's row and containers. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { EngineHealth } from '../containers/engine/engine-health.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import type { PortService } from '../leases/port.service.ts';
import { specsInUse } from './pod.change.ts';
import type { PlanFacts } from './pod.containers.ts';
import { launchHash, publishedPorts } from './pod.record.ts';
import type { PodRow } from './pod.store.ts';
import type { PodSsh } from './pod-ssh.ts';

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
  isHeld(podId: string): boolean;
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
    held: row.stopped === 1 || deps.isHeld(row.id),
  });
}
