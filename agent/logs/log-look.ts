/** How a container is, asked of the engine once for all its readers. */
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
} from '../containers/engine/engine.ts';

/** `unknown` while the engine does not answer. */
export type LookAt = (id: string) => Promise<ContainerState | 'gone' | 'unknown'>;

/** An answer is good for so long: less than the time between two looks of one reader. */
const FRESH_MS = 500;
/** Containers whose answer is kept; the oldest is forgotten. */
const MAX_KEPT = 256;

/** Answers are shared, and asked again when they are half a second old. */
export function createLookAt(
  clock: Clock,
  engine: Pick<ContainerEngine, 'inspectContainer'>,
): LookAt {
  const asked = new Map<string, { atMs: number; answer: ReturnType<LookAt> }>();

  async function ask(id: string): ReturnType<LookAt> {
    try {
      return (await engine.inspectContainer(id)) ?? 'gone';
    } catch (error) {
      if (error instanceof EngineError) return 'unknown';
      throw error;
    }
  }

  return (id) => {
    const known = asked.get(id);
    if (known !== undefined && clock.monotonicMs() - known.atMs < FRESH_MS) return known.answer;
    asked.delete(id);
    const [oldest] = asked.keys();
    if (oldest !== undefined && asked.size >= MAX_KEPT) asked.delete(oldest);
    const answer = ask(id);
    asked.set(id, { atMs: clock.monotonicMs(), answer });
    return answer;
  };
}
