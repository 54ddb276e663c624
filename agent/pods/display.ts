/** Whether this host gives containers the driver's display capability: asked for until it is refused once. */
import { EngineError } from '../containers/engine/engine.ts';

/** What the container runtime says where the device of the capability is missing. */
const REFUSAL = /nvidia-modeset/i;
/** Containers made without it that have not been seen to start. */
const MAX_REMEMBERED = 1_000;

/** Forgotten by a restart, which costs one more refused start. */
export function createDisplay() {
  let given = true;
  const without = new Set<string>();

  return {
    isGiven: () => given,
    /** To be told of each new container. */
    created(containerId: string): void {
      if (given) return;
      if (without.size >= MAX_REMEMBERED) without.clear();
      without.add(containerId);
    },
    /** Whether making the container anew, without the capability, can help: at most once per container. */
    isRefused(containerId: string, error: unknown): boolean {
      const refused = error instanceof EngineError && REFUSAL.test(error.message);
      if (!refused || without.delete(containerId)) return false;
      given = false;
      return true;
    },
  };
}
