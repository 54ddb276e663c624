/**
 * Composes the checks that validators and the provider's doctor run on this host: probe container, proof of work,
 * ports, egress, images, speed.
 */
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { ContainerEngine } from '../containers/engine/engine.ts';
import type { ExecEngine } from '../containers/engine/exec.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { PortRange } from '../leases/port.service.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import { registerChallengeRoutes } from './challenges/challenge.routes.ts';
import { createChallengeService } from './challenges/challenge.service.ts';
import { createDeviceChallenges } from './challenges/device-challenges.ts';
import { createProofProgram } from './challenges/proof-program.ts';
import { proofThreads } from './challenges/proof-threads.ts';
import { createEgressCheckService, tryConnection } from './egress-check.service.ts';
import { createImageChecks } from './image-check.service.ts';
import { createPortCheckService } from './port-check.service.ts';
import { createSpeedTests } from './speed-test.service.ts';
import {
  registerEgressCheckRoutes,
  registerImageCheckRoutes,
  registerPortCheckRoutes,
  registerSpeedTestRoutes,
  registerVerifyRoutes,
} from './verify.routes.ts';
import { createVerifyService, GPU_RUNTIME_INTERVAL_MS } from './verify.service.ts';

export type VerificationPorts = {
  clock: Clock;
  random: Random;
  executorId: string;
  engine: ContainerEngine;
  execEngine(): Promise<ExecEngine>;
  gpuDriver: GpuDriver;
  gpuProofImage: string;
  host: { cpuCores: number };
  portRange: PortRange;
};

/** The parts of the pods module that verification needs. */
export type VerifiedPods = {
  records: Pick<PodRecords, 'list'>;
  portLeases: { isLeased(port: number): boolean };
  ensureBuiltinImage(): Promise<string>;
};

export type Verification = ReturnType<typeof createVerification>;

/** `stopping` ends running checks. */
export function createVerification(
  ports: VerificationPorts,
  pods: VerifiedPods,
  stopping: AbortSignal,
) {
  const { gpuDriver: gpu } = ports;
  const isRented = () => pods.records.list().some(({ phase }) => phase !== 'removed');
  const { ensureBuiltinImage, portLeases } = pods;
  const verify = createVerifyService({ ...ports, gpu, ensureBuiltinImage });
  const program = createProofProgram({ ...ports, gpu, image: ports.gpuProofImage });
  const devices = createDeviceChallenges({ ...ports, program, isRented, stopping });
  const challenges = createChallengeService({
    ...ports,
    devices,
    workers: ports.host.cpuCores,
    isRented,
    proof: proofThreads,
  });
  const work: PeriodicWork[] = [
    { name: 'gpu runtime', intervalMs: GPU_RUNTIME_INTERVAL_MS, run: () => verify.tryGpuRuntime() },
  ];

  return {
    verify: verify.verify,
    gpuRuntimeTried: verify.gpuRuntimeTried,
    work,

    register(server: HttpServer): void {
      registerVerifyRoutes(server, { verify });
      registerChallengeRoutes(server, { challenges, stopping });
      const portChecks = createPortCheckService({
        ...ports,
        range: ports.portRange,
        isLeased: portLeases.isLeased,
        isRented,
      });
      registerPortCheckRoutes(server, { portChecks, stopping });
      const egressChecks = createEgressCheckService({ ...ports, tryConnection });
      registerEgressCheckRoutes(server, { egressChecks });
      registerImageCheckRoutes(server, { imageChecks: createImageChecks(ports) });
      const speedTests = createSpeedTests({ ...ports, isRented });
      registerSpeedTestRoutes(server, { speedTests, stopping });
    },

    /** Removes the probe containers that an earlier run of the agent left. */
    removeStaleProbes: verify.removeStaleProbes,

    /** Removes the containers that proofs of an earlier run left. */
    removeStaleProofs: program.removeLeftovers,
  };
}
