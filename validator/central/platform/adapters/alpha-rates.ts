/** Rates of alpha tokens: from a file that the operator keeps, or from a service asked by HTTP. */
import { readFileSync } from 'node:fs';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import { AlphaRateList, type AlphaSubnet } from '../../money/alpha/alpha.schemas.ts';
import type { AlphaRates } from '../ports.ts';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 256 * 1024;
/** How long rates count as present, how long they still do while there are no newer ones, when a failure is tried again. */
const FRESH_MS = 60_000;
const USABLE_MS = 600_000;
const RETRY_MS = 10_000;

/** Read once. Throws ConfigError that names the file and what is wrong with it. */
export function createFileAlphaRates(path: string): AlphaRates {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new ConfigError(`CENTRAL_ALPHA_RATES: ${messageOf(error)}`);
  }
  const parsed = AlphaRateList.safeParse(content);
  if (!parsed.success) {
    const [problem] = parsed.error.issues;
    const place = problem?.path.join('.') || 'the whole';
    throw new ConfigError(`CENTRAL_ALPHA_RATES: ${path}: ${place}: ${problem?.message}`);
  }
  return { subnets: async () => parsed.data };
}

type Known = { subnets: AlphaSubnet[]; sinceMs: number };

/** Asked at most once a minute, by one request at a time; the rest is answered from memory. */
export function createHttpAlphaRates({ url, clock }: { url: string; clock: Clock }): AlphaRates {
  let known: Known | null = null;
  let failedMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<AlphaSubnet[]> | null = null;

  async function ask(): Promise<AlphaSubnet[]> {
    const answer = await fetch(url, {
      headers: { Accept: 'application/json' },
      redirect: 'error',
      signal: clock.deadline(TIMEOUT_MS),
    });
    const text = await boundedText(answer, MAX_BYTES);
    if (answer.status !== 200) throw new Error(`answer ${answer.status}`);
    return AlphaRateList.parse(JSON.parse(text));
  }

  async function refresh(): Promise<AlphaSubnet[]> {
    try {
      const subnets = await ask();
      known = { subnets, sinceMs: clock.monotonicMs() };
      return subnets;
    } catch (error) {
      failedMs = clock.monotonicMs();
      throw unavailable(error);
    } finally {
      asking = null;
    }
  }

  return {
    async subnets() {
      const nowMs = clock.monotonicMs();
      const ageMs = known === null ? Number.POSITIVE_INFINITY : nowMs - known.sinceMs;
      if (known !== null && ageMs < FRESH_MS) return known.subnets;
      const usable = known !== null && ageMs < USABLE_MS ? known.subnets : null;
      if (nowMs - failedMs < RETRY_MS) {
        if (usable !== null) return usable;
        throw unavailable(new Error('failed a moment ago'));
      }
      asking ??= refresh();
      return usable === null ? asking : asking.catch(() => usable);
    },
  };
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The rates of alpha tokens are not available', {
    status: 503,
    cause,
  });
}
