/**
 * Connections that have not logged in. At a limit, a new connection takes the place of another one instead of being
 * refused, so that a flood cannot keep the owner of a pod out: a login needs less than a second, and connections of the
 * source with the most connections are closed first. Among equal sources a random one is closed, as in sshd's
 * MaxStartups. Logged-in connections do not count.
 */
import { clientAddressKey } from '#shared/http/addresses.ts';
import type { Random } from '#shared/runtime/random.ts';

export type LoginLimits = {
  /** Connections of one source, to all pods. */
  perSource: number;
  /** Connections of one source after too many failed logins. */
  perFailingSource: number;
  perPod: number;
  total: number;
};

export const LOGIN_LIMITS: LoginLimits = {
  perSource: 20,
  perFailingSource: 5,
  perPod: 40,
  total: 200,
};

export type NewLogin = {
  podId: string;
  /** Client's IP address. The addresses of an IPv6 network count as one source. */
  address: string;
  /** True if the source has failed to log in too often. */
  isFailing: boolean;
  /** Closes the connection. */
  close(): void;
};

type Entry = NewLogin & { source: string };

export type PendingLogins = ReturnType<typeof createPendingLogins>;

export function createPendingLogins(random: Pick<Random, 'int'>, limits = LOGIN_LIMITS) {
  const entries = new Set<Entry>();

  /** Closes a connection of the group, if the group has as many as `limit`. */
  function makeRoom(group: readonly Entry[], limit: number): void {
    if (group.length < limit) return;
    const candidates = largest(group, ({ source }) => source);
    const victim = candidates[random.int(candidates.length)];
    if (victim === undefined) return;
    entries.delete(victim);
    victim.close();
  }

  return {
    /** Adds a connection, and closes another one at a limit. Returns a function that removes the connection. */
    add(login: NewLogin): () => void {
      const source = clientAddressKey(login.address);
      const perSource = login.isFailing ? limits.perFailingSource : limits.perSource;
      makeRoom(
        [...entries].filter((entry) => entry.source === source),
        perSource,
      );
      makeRoom(
        [...entries].filter(({ podId }) => podId === login.podId),
        limits.perPod,
      );
      if (entries.size >= limits.total) {
        // The pod under attack loses a connection, not the others.
        makeRoom(
          largest([...entries], ({ podId }) => podId),
          0,
        );
      }
      const entry = { ...login, source };
      entries.add(entry);
      return () => void entries.delete(entry);
    },

    count: () => entries.size,
  };
}

/** Returns the entries of the largest group, or of all groups of that size. */
function largest(entries: readonly Entry[], keyOf: (entry: Entry) => string): Entry[] {
  const groups = [...Map.groupBy(entries, keyOf).values()];
  const size = Math.max(0, ...groups.map(({ length }) => length));
  return groups.filter(({ length }) => length === size).flat();
}
