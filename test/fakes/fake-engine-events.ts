/** One follower of the events of the engine in memory. */
import { EngineError, type EngineEvent } from '../../agent/containers/engine/engine.ts';
import { hasLabels, type World } from './fake-engine-world.ts';

/** Ends with `signal`; throws when the engine goes away. */
export async function* eventStream(
  { streams, containers }: World,
  labels: Record<string, string>,
  signal: AbortSignal,
): AsyncGenerator<EngineEvent> {
  const queue: (EngineEvent | null)[] = [];
  let wake = () => {};
  const push = (event: EngineEvent | null) => {
    const container = event === null ? undefined : containers.get(event.containerId);
    if (container !== undefined && !hasLabels(container.labels, labels)) return;
    queue.push(event);
    wake();
  };
  streams.add(push);
  signal.addEventListener('abort', () => wake(), { once: true });
  try {
    while (!signal.aborted) {
      const next = queue.shift();
      if (next === null) throw new EngineError('unavailable', 'the event stream ended');
      if (next !== undefined) yield next;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    streams.delete(push);
  }
}
