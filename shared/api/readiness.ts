/** Readiness of a process: probes all components at once, each with a deadline, and its public route. */
import type { FastifyContextConfig } from 'fastify';
import type { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { SUSPICION_TEXTS } from '#shared/runtime/clock-file.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { GuardedClock } from '#shared/runtime/guarded-clock.ts';
import { Readiness } from './agent/inventory.ts';

export type ReadinessProbe = {
  /** Resolves with a short description; rejects if the component is not usable. */
  check(): Promise<string>;
  /** False: a failure is reported and the process stays ready. */
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

/** Probe of the clock. A suspect clock only suspends work that it could make wrong: the process serves. */
export function clockProbe({ status }: Pick<GuardedClock, 'status'>): ReadinessProbe {
  return {
    required: false,
    async check() {
      const { suspicion } = status();
      if (suspicion !== null) throw new Error(`suspect: ${SUSPICION_TEXTS[suspicion]}`);
      return 'trusted';
    },
  };
}

/** The same readiness for a public route: without the texts of failed probes, which may name files. */
export function withoutDetails(check: ReadinessCheck): ReadinessCheck {
  return async () => {
    const { ready, components } = await check();
    const shown = Object.entries(components).map(
      ([name, { ok, message }]) => [name, { ok, message: ok ? message : NOT_SHOWN }] as const,
    );
    return { ready, components: Object.fromEntries(shown) };
  };
}

const NOT_SHOWN = 'does not work; the log of the process has the reason';

async function outcome(clock: Clock, probe: ReadinessProbe) {
  try {
    return { ok: true, message: await withDeadline(clock, PROBE_DEADLINE_MS, probe.check()) };
  } catch (error) {
    return { ok: false, message: messageOf(error) };
  }
}

/**
 * Registers `GET /healthz`: 200 while the event loop runs. A failure means that a restart helps. Undocumented as `/readyz`
 * is.
 */
export function registerLiveness(server: HttpServer, config: FastifyContextConfig = {}): void {
  server.get('/healthz', { config }, async () => ({ status: 'ok' }));
}

/**
 * Registers `GET /readyz`: 200 if every required component works, 503 otherwise. The route has no description, because
 * load balancers and monitoring use it, and clients do not. `config`: the route's options of the server.
 */
export function registerReadiness(
  server: HttpServer,
  readiness: ReadinessCheck,
  config: FastifyContextConfig = {},
): void {
  server.get('/readyz', { config }, async (_request, reply) => {
    const answer = Readiness.parse(await readiness());
    return reply.status(answer.ready ? 200 : 503).send(answer);
  });
}
