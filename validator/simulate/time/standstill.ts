/**
 * Detects that time stands still for ever: each timer adds another one that is due at the same instant. Names the code
 * that added the last of them.
 */

/** More timers than a market of 10,000 hosts adds at one instant. */
const MAX_AT_ONE_INSTANT = 200_000;
/** Number of timers whose origin is named. Before the last ones, origins would only cost time. */
const NAMED = 5;
/** Number of functions that are named for each timer. */
const FRAMES = 3;

export type Standstill = {
  /** Call it for each timer that is due at the instant at which it is added. */
  note(nowMs: number): void;
  /** Describes the standstill; null if there is none. */
  problem(): string | null;
};

export function createStandstill(limit = MAX_AT_ONE_INSTANT): Standstill {
  let atMs: number | null = null;
  let count = 0;
  let origins: string[] = [];
  let problem: string | null = null;
  return {
    note(nowMs) {
      if (nowMs !== atMs) [atMs, count, origins] = [nowMs, 0, []];
      count += 1;
      if (count > limit - NAMED) origins.push(originIn(new Error().stack ?? ''));
      if (count < limit || problem !== null) return;
      problem = `${count} timers were added at one instant that were due at once; the last by ${origins.join('; ')}`;
    },
    problem: () => problem,
  };
}

const OF_THE_CLOCK = /simulate\/(?:time\/[a-z-]+|world\/life)\.ts|new Promise/;

/** Returns the functions that added a timer, innermost first, without those of the clock. */
function originIn(stack: string): string {
  const frames = stack.split('\n').slice(1);
  const callers = frames.filter((frame) => !OF_THE_CLOCK.test(frame));
  return callers
    .slice(0, FRAMES)
    .map((frame) =>
      frame
        .trim()
        .replace(/^at /, '')
        .replace(/file:\/\/\S*\/(?=[^/]+\/[^/]+$)/, ''),
    )
    .join(' < ');
}
