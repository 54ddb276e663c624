/**
 * Rate limits of every request, checked before the request is processed: by address, and then by account or API key.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { clientAddressKey } from '#shared/http/addresses.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Identity } from '../identity.ts';
import { NAMED_LIMITS, type RateLimits } from './policies.ts';
import { createTokenBuckets, type Rate, type Reading, type TokenBuckets } from './token-bucket.ts';

/** Maximum number of keys per rate. It limits memory during a flood of requests from many addresses. */
const MAX_KEYS = 20_000;
/** Minimum value of Retry-After. */
const RETRY_AFTER_SECONDS = 60;
const DEFAULT_POLICY = 'default';
const URGENT_POLICY = 'urgent';

type Limit = { rate: Rate; buckets: TokenBuckets };
type Counted = { policy: string; rate: Rate; reading: Reading };

declare module 'fastify' {
  interface FastifyRequest {
    /** Policies that have counted this request so far, for the `RateLimit` response fields. */
    counted: Counted[] | null;
  }
}

/**
 * Creates the hooks. `beforeAuthentication` must be called before the hook that sets identities, and
 * `afterAuthentication` after that hook. `divisor` returns the number of processes, which divide the rates among
 * themselves: a load balancer spreads the requests of a client, and no request waits for a count in the database.
 */
export function createRateLimits(
  rates: RateLimits,
  { clock, divisor }: { clock: Clock; divisor?: () => number },
) {
  const limitOf = (rate: Rate): Limit => ({
    rate,
    buckets: createTokenBuckets(rate, { clock, maxKeys: MAX_KEYS, divisor }),
  });
  const address = limitOf(rates.address);
  const credential = limitOf(rates.credential);
  const urgent = limitOf(rates.urgent);
  const named = Object.fromEntries(NAMED_LIMITS.map((name) => [name, limitOf(rates[name])]));

  function count(
    request: FastifyRequest,
    reply: FastifyReply,
    { policy, limit, key }: { policy: string; limit: Limit | undefined; key: string },
  ): void {
    if (limit === undefined) return;
    const reading = limit.buckets.take(key);
    const rate = { ...limit.rate, quota: limit.buckets.quota() };
    const counted = [...(request.counted ?? []), { policy, rate, reading }];
    request.counted = counted;
    void reply.headers(fieldsOf(counted));
    if (!reading.allowed) throw tooMany(reading);
  }

  function countAddress(request: FastifyRequest, reply: FastifyReply): void {
    const { limit: name, urgent: isUrgent } = request.routeOptions.config;
    if (name === 'exempt') return;
    const key = clientAddressKey(request.ip);
    if (name !== undefined) count(request, reply, { policy: name, limit: named[name], key });
    const policy = isUrgent ? URGENT_POLICY : DEFAULT_POLICY;
    count(request, reply, { policy, limit: isUrgent ? urgent : address, key });
  }

  function countCredential(request: FastifyRequest, reply: FastifyReply): void {
    const key = ownerOf(request.identity);
    const { limit, urgent: isUrgent } = request.routeOptions.config;
    if (key === null || limit === 'exempt' || isUrgent) return;
    count(request, reply, { policy: DEFAULT_POLICY, limit: credential, key });
  }

  return {
    beforeAuthentication(server: HttpServer): void {
      server.decorateRequest('counted', null);
      server.addHook('onRequest', (request, reply, done) => {
        countAddress(request, reply);
        done();
      });
    },
    afterAuthentication(server: HttpServer): void {
      server.addHook('onRequest', (request, reply, done) => {
        countCredential(request, reply);
        done();
      });
    },
  };
}

/**
 * Returns the key for the rate per credential; null for requests that validators have signed, which are not limited,
 * because validators are few and known.
 */
function ownerOf(identity: Identity | null): string | null {
  switch (identity?.kind) {
    case 'user': {
      const { accountId, credential } = identity;
      return `${accountId} ${credential.type === 'api_key' ? credential.keyId : 'sessions'}`;
    }
    case 'portal':
      return `${identity.providerId} portal`;
    case 'validator':
      return identity.accountId === null ? null : `${identity.accountId} sessions`;
    default:
      return null;
  }
}

/** Formats one member per policy. If a policy has counted twice, formats the count with fewer remaining requests. */
function fieldsOf(counted: readonly Counted[]): Record<string, string> {
  const tightest = new Map<string, Counted>();
  for (const entry of counted) {
    const present = tightest.get(entry.policy);
    if (present === undefined || entry.reading.remaining < present.reading.remaining) {
      tightest.set(entry.policy, entry);
    }
  }
  const entries = [...tightest.values()];
  return {
    'RateLimit-Policy': entries
      .map(({ policy, rate }) => `"${policy}";q=${rate.quota};w=${rate.windowMs / 1000}`)
      .join(', '),
    RateLimit: entries
      .map(({ policy, reading }) => `"${policy}";r=${reading.remaining};t=${reading.resetSeconds}`)
      .join(', '),
  };
}

function tooMany({ retrySeconds }: Reading): ApiError {
  const seconds = Math.max(RETRY_AFTER_SECONDS, retrySeconds);
  return new ApiError('rate_limited', 'Rate limit exceeded: too many requests', {
    headers: { 'Retry-After': String(seconds) },
    hint: `Wait ${seconds} seconds, then retry. The request had no effect.`,
  });
}
