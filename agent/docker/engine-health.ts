/** Whether the engine answers, as the agent's own calls find out; there is no extra polling. */
import type { Log } from '#shared/log.ts';

export type EngineHealth = ReturnType<typeof createEngineHealth>;

/** Answers until the first report. */
export function createEngineHealth(log: Log) {
  let away: string | null = null;
  return {
    answered(): void {
      if (away !== null) log.info('the Docker engine answers again');
      away = null;
    },
    lost(message: string): void {
      if (away === null) log.warn({ detail: message }, 'the Docker engine does not answer');
      away = message;
    },
    /** Why it does not answer; null while it does. */
    awayBecause: () => away,
  };
}
