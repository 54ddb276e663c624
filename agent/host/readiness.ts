/** Whether the agent can do its work: every component asked at once, each with a deadline. */
import type { z } from 'zod';
import type { Readiness } from '#shared/api/agent/inventory.ts';
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type DatabaseSync, isDiskFull } from '#shared/runtime/sqlite.ts';

export type ReadinessProbe = {
  /** Resolves with a few words on what was found; rejects when the component is not usable. */
  check(): Promise<string>;
  /** False: its absence is shown and the agent stays ready. */
  required: boolean;
};

export type ReadinessCheck = () => Promise<z.output<typeof Readiness>>;

const PROBE_DEADLINE_MS = 2_000;
/** The route is public: many callers cost one round of probes. */
const CACHE_MS = 1_000;

/** `probes` by component name: `docker` and `database` required, `gpu` not. */
export function createReadiness(clock: Clock, probes: Record<string, ReadinessProbe>) {
  let cached: { atMs: number; answer: ReturnType<ReadinessCheck> } | null = null;

  async function ask(): ReturnType<ReadinessCheck> {
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
    if (cached === null || nowMs - cached.atMs >= CACHE_MS) cached = { atMs: nowMs, answer: ask() };
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

// MERGED agent/host/readiness.ts: Whether the agent's store still takes and gives.
const NAME = 'probed_ms';

/**
 * Writes a row and reads it back; why that did not work, in words. Null for a full disk too: the agent lives with that,
 * and a restart frees nothing.
 */
export function storeProblem(database: DatabaseSync, nowMs: number): string | null {
  const written = String(nowMs);
  try {
    database
      .prepare(
        `INSERT INTO meta (name, value) VALUES (:name, :written)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      )
      .run({ name: NAME, written });
    const found = database.prepare('SELECT value FROM meta WHERE name = :name').get({ name: NAME });
    return found?.['value'] === written ? null : 'it does not keep what is written';
  } catch (error) {
    return isDiskFull(error) ? null : messageOf(error);
  }
}
