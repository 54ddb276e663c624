/** Feeds the service manager's watchdog for as long as the process is found well, and no longer. */

import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import { withDeadline } from '../with-deadline.ts';
import { ailmentOf, standingOf, type VitalBounds, type Vitals } from './vitals.ts';

export type Watch = {
  /** Looks at the process; a rejection counts as an ailment. */
  look(): Promise<Vitals>;
  bounds: VitalBounds;
};

/** A look that takes longer is an ailment: whatever it asks has deadlines of its own. */
export const LOOK_WITHIN_MS = 8_000;
/** An ailment may pass before the watchdog bites. */
const LOOK_AGAIN_MS = 1_000;

/** `tell` gets the lines for the service manager every `intervalMs`, and must not reject. */
export function startWatchdog(options: {
  watch: Watch;
  intervalMs: number;
  tell(lines: readonly string[]): Promise<void>;
  clock: Clock;
  log: Log;
}): { stop(): Promise<void> } {
  const { watch, tell, clock, log } = options;
  const stopping = new AbortController();
  let ailment: string | null = null;

  /** What is wrong now, and what to show. */
  async function examine(lagMs: number): Promise<{ ill: string | null; shown: string }> {
    try {
      const vitals = await withDeadline(clock, LOOK_WITHIN_MS, watch.look());
      const ill = ailmentOf(vitals, lagMs, watch.bounds);
      return { ill, shown: ill ?? standingOf(vitals) };
    } catch (error) {
      const ill = `it could not be looked at: ${messageOf(error)}`;
      return { ill, shown: ill };
    }
  }

  async function lookOnce(lagMs: number): Promise<void> {
    const { ill, shown } = await examine(lagMs);
    if (ill !== null && ill !== ailment) {
      log.error(
        { detail: ill },
        'not well; the service manager is to restart this unless it passes',
      );
    }
    if (ill === null && ailment !== null) log.info('well again');
    ailment = ill;
    const status = `STATUS=${shown}`;
    await tell(ill === null ? ['WATCHDOG=1', status] : [status]);
  }

  async function repeat(): Promise<void> {
    for (;;) {
      const pauseMs = ailment === null ? options.intervalMs : LOOK_AGAIN_MS;
      const sleptMs = clock.monotonicMs();
      await clock.sleep(pauseMs, stopping.signal).catch(() => undefined);
      if (stopping.signal.aborted) return;
      await lookOnce(clock.monotonicMs() - sleptMs - pauseMs);
    }
  }

  const ended = repeat();
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}
