/** Composition of hidden rentals: the accounts of a file, the central API's public routes, and SSH. */
import type { ListenAddress } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { CheckPolicy } from '../checks/check-policy.ts';
import { acquireLease } from '../store/lease.store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createHiddenRentals, type HiddenRentals } from './hidden-rentals.service.ts';
import { createOpensshLogin } from './openssh-login.ts';
import { ORDINARY_USE } from './ordinary-use.ts';
import type { ProbeAccounts } from './probe-accounts.ts';
import { createRenterClient } from './renter-client.ts';
import { openThroughSocks } from './socks.ts';

export type ProbeSettings = {
  /** Read before each pass, so that a changed file counts at once; null disables hidden rentals. */
  readAccounts(): ProbeAccounts | null;
  usdPerDay: number;
  /** SOCKS5 proxy of the logins; null connects directly. */
  socks: ListenAddress | null;
};

export const NO_PROBES: ProbeSettings = { readAccounts: () => null, usdPerDay: 0, socks: null };

export type ProbesOptions = {
  settings: ProbeSettings;
  store: EvidenceStore;
  clock: Clock;
  random: Random;
  log: Log;
  policy: CheckPolicy;
  /** Includes `/api`. */
  centralUrl: string;
  listed(): readonly string[];
  /** Unique id of this process among those that share the store. */
  holder: string;
};

/** A process that holds this lease makes the rentals; longer than the longest pause between two passes. */
const LEASE_MS = 2 * 3_600_000;

export function createProbes({
  settings,
  centralUrl,
  holder,
  ...options
}: ProbesOptions): HiddenRentals {
  const { store, clock } = options;
  const { socks } = settings;
  return createHiddenRentals({
    ...options,
    ...settings,
    use: ORDINARY_USE,
    clientOf: ({ api_key: apiKey }) => createRenterClient({ baseUrl: centralUrl, apiKey, clock }),
    logIn: createOpensshLogin(clock, socks === null ? undefined : openThroughSocks(socks)),
    holdsLease: () => {
      const untilMs = clock.now() + LEASE_MS;
      return acquireLease(store, { name: 'hidden-rentals', holder, untilMs }, clock.now());
    },
  });
}
