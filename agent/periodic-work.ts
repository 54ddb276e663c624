/** What an agent does again and again, each at its own pace. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';

/** `name` is what the log calls it; the pause lies between two runs. */
export type PeriodicWork = { name: string; intervalMs: number; run(): Promise<unknown> };

/** Runs it at once and from then on; what a run throws is logged. */
export function startWork(
  { name, intervalMs, run }: PeriodicWork,
  { clock, log }: { clock: Clock; log: Log },
): Loop {
  const onError = (error: unknown) => log.error({ err: error }, `${name} failed`);
  return startLoop({ clock, intervalMs, run: async () => void (await run()), onError });
}
