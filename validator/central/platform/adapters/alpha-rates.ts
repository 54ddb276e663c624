/** Rates of alpha tokens, from a file or from an HTTP service. */
import { readFileSync } from 'node:fs';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import { AlphaRateList, type AlphaSubnet } from '../../money/alpha/alpha.schemas.ts';
import type { AlphaRates } from '../ports.ts';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 256 * 1024;
/** Time for which rates are served from memory. */
const FRESH_MS = 60_000;
/** Maximum age of rates that are served from memory while the service fails. */
const USABLE_MS = 600_000;
/** Pause after a failed request. */
const RETRY_MS = 10_000;

/** Reads the file once. Throws a ConfigError that names the file and the problem. */
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
    const place = problem?.path.join('.') || 'the document';
    throw new ConfigError(`CENTRAL_ALPHA_RATES: ${path}: ${place}: ${problem?.message}`);
  }
  return { subnets: async () => parsed.data };
}

type CachedRates = { subnets: AlphaSubnet[]; sinceMs: number };

/** Requests the rates at most once a minute, one request at a time. */
export function createHttpAlphaRates({ url, clock }: { url: string; clock: Clock }): AlphaRates {
  let cached: CachedRates | null = null;
  let failedMs = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<AlphaSubnet[]> | null = null;

  async function request(): Promise<AlphaSubnet[]> {
    const response = await fetch(url, {
      headers: { Accept: 'application/json' },
      redirect: 'error',
      signal: clock.deadline(TIMEOUT_MS),
    });
    const text = await boundedText(response, MAX_BYTES);
    if (response.status !== 200) throw new Error(`status ${response.status}`);
    return AlphaRateList.parse(JSON.parse(text));
  }

  async function refresh(): Promise<AlphaSubnet[]> {
    try {
      const subnets = await request();
      cached = { subnets, sinceMs: clock.monotonicMs() };
      return subnets;
    } catch (error) {
      failedMs = clock.monotonicMs();
      throw unavailable(error);
    } finally {
      refreshing = null;
    }
  }

  return {
    async subnets() {
      const nowMs = clock.monotonicMs();
      const ageMs = cached === null ? Number.POSITIVE_INFINITY : nowMs - cached.sinceMs;
      if (cached !== null && ageMs < FRESH_MS) return cached.subnets;
      const usable = cached !== null && ageMs < USABLE_MS ? cached.subnets : null;
      if (nowMs - failedMs < RETRY_MS) {
        if (usable !== null) return usable;
        throw unavailable(new Error('the request failed a moment ago'));
      }
      refreshing ??= refresh();
      return usable === null ? refreshing : refreshing.catch(() => usable);
    },
  };
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The rates of alpha tokens are not available', {
    status: 503,
    cause,
  });
}
