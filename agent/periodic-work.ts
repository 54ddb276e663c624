/** Work that the agent repeats at an interval. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';

/**
 * Work that is repeated. `name` appears in the log. `intervalMs` is the time between the end of a run and the start of
 * the next. If `intervalMs` is a function, it is called after every run and returns the next interval.
 */
export type PeriodicWork = {
  name: string;
  intervalMs: number | (() => number);
  run(): Promise<unknown>;
};

/** Runs the work at once and then periodically. Errors of a run are logged. */
export function startWork(
  { name, intervalMs, run }: PeriodicWork,
  { clock, log }: { clock: Clock; log: Log },
): Loop {
  const onError = (error: unknown) => log.error({ err: error }, `${name} failed`);
  return startLoop({ clock, intervalMs, run: async () => void (await run()), onError });
}
