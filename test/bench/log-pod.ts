/** Pods that write, and readers that only count bytes, so that the benchmark measures the agent and not the reader. */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { launchPod } from '../fakes/agents/launch-pod.ts';

const IMAGE = 'podwright.local/base:1';
const MEMORY_BYTES = 256 * 1024 * 1024;

/** Starts a pod that runs `script` in a shell and waits until it runs. */
export function startLogPod(agent: AgentProcess, script: string): Promise<PodView> {
  return launchPod(agent, {
    generation: 1,
    image: { reference: IMAGE },
    entrypoint: ['sh', '-c'],
    command: [script],
    limits: { cpu_cores: 1, memory_bytes: MEMORY_BYTES, shm_bytes: 0, pids: 64 },
    stop_grace_seconds: 0,
  });
}

/** Opens the raw event stream. */
export async function openLog(
  { send }: AgentProcess,
  id: string,
  query: string,
  signal: AbortSignal,
): Promise<AsyncGenerator<Uint8Array>> {
  const response = await send({ method: 'GET', path: `/v1/pods/${id}/logs?${query}`, signal });
  if (!response.ok || response.body === null) throw new Error(`log refused: ${response.status}`);
  return bytesOf(response);
}

/**
 * Keeps a reference to the response: fetch cancels a body that is not being read when its response is garbage
 * collected.
 */
async function* bytesOf(response: Response): AsyncGenerator<Uint8Array> {
  if (response.body !== null) yield* response.body;
}

/** Counts numbered lines and throws as soon as one is missing or duplicated, or a gap is reported. */
export function createSequenceCheck(pattern: RegExp) {
  let rest = '';
  let count = 0;
  return {
    count: () => count,
    push(chunk: Uint8Array): void {
      const text = rest + Buffer.from(chunk).toString('latin1');
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      const whole = text.slice(0, end);
      if (whole.includes('"meta":"gap"')) throw new Error(`a gap after line ${count}`);
      for (const [, number] of whole.matchAll(pattern)) {
        count += 1;
        if (Number(number) !== count) throw new Error(`line ${number} where ${count} was due`);
      }
    },
  };
}
