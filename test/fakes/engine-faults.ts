/** Faults of the engine in memory, each until it is taken back. */
import { EngineError } from '../../agent/containers/engine/engine.ts';
import type { FakeEngine } from './fake-engine.ts';

/** Fails every call of `method` with `kind`, but for those that are `spared`; what is returned mends it. */
export function breakEngine(
  engine: FakeEngine,
  method: string,
  kind: EngineError['kind'],
  spared: (method: string, detail: string) => boolean = () => false,
): () => void {
  engine.hook = async (moment, called, detail) => {
    if (moment === 'before' && called === method && !spared(called, detail)) {
      throw new EngineError(kind, `broken ${method}`);
    }
  };
  return () => {
    engine.hook = async () => undefined;
  };
}

/** Holds every call of `method` back; what is returned lets them go. */
export function holdEngine(engine: FakeEngine, method: string): () => void {
  const held: (() => void)[] = [];
  engine.hook = (moment, called) =>
    moment === 'before' && called === method
      ? new Promise<void>((resolve) => held.push(resolve))
      : Promise.resolve();
  return () => {
    engine.hook = async () => undefined;
    for (const release of held) release();
  };
}
