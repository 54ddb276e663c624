/** What validators, and the provider's doctor, find out of this host put together: probe container, proof of work, ports, egress, images, speed. */
import type { HttpServer } from '#shared/http/server.ts';
import type { AgentPorts } from '../agent-ports.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodCore } from '../pod-core.ts';
import { createCardChallenges } from './challenges/card-challenges.ts';
import { registerChallengeRoutes } from './challenges/challenge.routes.ts';
import { createChallengeService } from './challenges/challenge.service.ts';
import { createGpuProof } from './challenges/gpu-proof.ts';
import { proofThreads } from './challenges/proof-threads.ts';
import { registerEgressCheckRoutes } from './egress-check.routes.ts';
import { createEgressCheckService, tryConnection } from './egress-check.service.ts';
import { registerImageCheckRoutes } from './image-check.routes.ts';
import { createImageChecks } from './image-check.service.ts';
import { registerPortCheckRoutes } from './port-check.routes.ts';
import { createPortCheckService } from './port-check.service.ts';
import { registerSpeedTestRoutes } from './speed-test.routes.ts';
import { createSpeedTests } from './speed-test.service.ts';
import { registerVerifyRoutes } from './verify.routes.ts';
import { createVerifyService, GPU_RUNTIME_INTERVAL_MS } from './verify.service.ts';

/** `stopping` ends what is under way. */
export function createExamination(ports: AgentPorts, core: PodCore, stopping: AbortSignal) {
  const { gpuDriver: gpu } = ports;
  const isRented = () => core.records.list().some(({ phase }) => phase !== 'removed');
  const { ensureBuiltinImage, portLeases } = core;
  const verify = createVerifyService({ ...ports, gpu, ensureBuiltinImage });
  const gpuProof = createGpuProof({ ...ports, gpu, image: ports.gpuProofImage });
  const challenges = createChallengeService({
    ...ports,
    cards: createCardChallenges({ ...ports, gpuProof }),
    workers: ports.host.cpuCores,
    folder: ports.scratchFolder,
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
        ...{ range: ports.portRange, isLeased: portLeases.isLeased, isRented },
      });
      registerPortCheckRoutes(server, { portChecks, stopping });
      const egressChecks = createEgressCheckService({ ...ports, tryConnection });
      registerEgressCheckRoutes(server, { egressChecks });
      registerImageCheckRoutes(server, { imageChecks: createImageChecks(ports) });
      const speedTests = createSpeedTests({ ...ports, isRented });
      registerSpeedTestRoutes(server, { speedTests, stopping });
    },

    /** Takes away the probe containers that an earlier run has left. */
    removeStaleProbes: verify.removeStaleProbes,

    /** The same for its proofs of work. */
    async removeStaleProofs(): Promise<void> {
      await Promise.all([challenges.removeLeftovers(), gpuProof.removeLeftovers()]);
    },
  };
}

export type Examination = ReturnType<typeof createExamination>;
