/** Which rates there are, and whom each counts (marketplace reference 1.12). */
import type { Rate } from './token-bucket.ts';

/**
 * Stricter rates of an address on single routes, which name one in `config.limit`, beside the default that counts
 * every request. What an account may make in an hour (templates) its own service counts, in the database.
 */
export const NAMED_LIMITS = ['login', 'search'] as const;
export type NamedLimit = (typeof NAMED_LIMITS)[number];

export type RateLimits = {
  /** Of one address; one IPv6 host has a /64. */
  address: Rate;
  /** Of one account by one of its keys, or by its sessions. */
  credential: Rate;
} & Record<NamedLimit, Rate>;

const MINUTE_MS = 60_000;

export const DEFAULT_LIMITS: RateLimits = {
  address: { quota: 600, windowMs: MINUTE_MS },
  credential: { quota: 600, windowMs: MINUTE_MS },
  /** Sign-in, sign-up and resets of passwords: each costs a hash, and tells guessers something. */
  login: { quota: 10, windowMs: MINUTE_MS },
  search: { quota: 10, windowMs: MINUTE_MS },
};

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A stricter rate for this route, or `exempt` for what is asked to see whether we are up. */
    limit?: NamedLimit | 'exempt';
  }
}
