/**
 * Plans the GPUs of the agents of a local marketplace: real ones on the first agent if present, else simulated ones.
 */
import type { RunCommand } from '#shared/runtime/run-command.ts';

export type LocalGpus = {
  gpuType: string;
  gpuCount: number;
  /** AGENT_GPU and AGENT_SIMULATED_GPUS. */
  environment: Record<string, string>;
};

const NVIDIA_SMI_TIMEOUT_MS = 10_000;
const MAX_OUTPUT_BYTES = 65_536;
/** Simulated GPU models. Agents get them in turn, so that the market has more than one. */
const SIMULATED = [
  { gpuType: 'NVIDIA H100 80GB HBM3', gpuCount: 2 },
  { gpuType: 'NVIDIA GeForce RTX 4090', gpuCount: 1 },
] as const;

/** One entry per agent. Real cards go to the first agent only, because a card may belong to one executor. */
export async function planGpus(agents: number, run: RunCommand): Promise<LocalGpus[]> {
  const real = await realGpuNames(run);
  return Array.from({ length: agents }, (_, index) => {
    const [first] = real;
    if (index === 0 && first !== undefined) {
      return { gpuType: first, gpuCount: real.length, environment: { AGENT_GPU: 'nvidia' } };
    }
    return simulated(index);
  });
}

function simulated(index: number): LocalGpus {
  const kind = SIMULATED[index % SIMULATED.length] ?? SIMULATED[0];
  return {
    ...kind,
    environment: {
      AGENT_GPU: 'simulated',
      AGENT_SIMULATED_GPUS: `${kind.gpuType}*${kind.gpuCount}`,
    },
  };
}

async function realGpuNames(run: RunCommand): Promise<string[]> {
  try {
    const result = await run('nvidia-smi', ['--query-gpu=name', '--format=csv,noheader'], {
      timeoutMs: NVIDIA_SMI_TIMEOUT_MS,
      maxOutputBytes: MAX_OUTPUT_BYTES,
    });
    if (result.exitCode !== 0) return [];
    return result.stdout
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
  } catch {
    return [];
  }
}
