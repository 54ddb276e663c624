/** Checks whether the agent can work: probes all components at once, each with a deadline. */
import type { z } from 'zod';
import type { Readiness } from '#shared/api/agent/inventory.ts';
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type DatabaseSync, isDiskFull } from '#shared/runtime/sqlite.ts';

export type ReadinessProbe = {
  /** Resolves with a short description; rejects if the component is not usable. */
  check(): Promise<string>;
  /** False: a failure is reported and the agent stays ready. */
  required: boolean;
};

export type ReadinessCheck = () => Promise<z.output<typeof Readiness>>;

const PROBE_DEADLINE_MS = 2_000;
/** Time for which callers share one round of probes, because the route is public. */
const CACHE_MS = 1_000;

/** `probes` by component name. */
export function createReadiness(clock: Clock, probes: Record<string, ReadinessProbe>) {
  let cached: { atMs: number; answer: ReturnType<ReadinessCheck> } | null = null;

  async function runProbes(): ReturnType<ReadinessCheck> {
    const answers = await Promise.all(
      Object.entries(probes).map(
        async ([name, probe]) => [name, await outcome(clock, probe)] as const,
      ),
    );
    const ready = answers.every(([name, { ok }]) => ok || probes[name]?.required === false);
    return { ready, components: Object.fromEntries(answers) };
  }

  const check: ReadinessCheck = () => {
    const nowMs = clock.monotonicMs();
    if (cached === null || nowMs - cached.atMs >= CACHE_MS)
      cached = { atMs: nowMs, answer: runProbes() };
    return cached.answer;
  };
  return check;
}

async function outcome(clock: Clock, probe: ReadinessProbe) {
  try {
    return { ok: true, message: await withDeadline(clock, PROBE_DEADLINE_MS, probe.check()) };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

const PROBE_ROW = 'probed_ms';

/**
 * Writes a row to the store and reads it back. Returns the error, or null on success. A full disk also returns null,
 * because a restart would not free any space.
 */
export function storeProblem(database: DatabaseSync, nowMs: number): string | null {
  const written = String(nowMs);
  try {
    database
      .prepare(
        `INSERT INTO meta (name, value) VALUES (:name, :written)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      )
      .run({ name: PROBE_ROW, written });
    const found = database
      .prepare('SELECT value FROM meta WHERE name = :name')
      .get({ name: PROBE_ROW });
    return found?.['value'] === written ? null : 'a written row could not be read back';
  } catch (error) {
    return isDiskFull(error) ? null : messageOf(error);
  }
}
