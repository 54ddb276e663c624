/** Host ports of pods: leases from the configured range, stable until the pod's removal (agent reference 8). */

import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Lease, LeaseStore } from './lease.store.ts';

export type PortRange = { first: number; last: number };
export type PortService = ReturnType<typeof createPortService>;

/** No port of the range is left for this pod. */
export class PortPoolExhausted extends Error {
  override name = 'PortPoolExhausted';
}

/** A port rests this long, so that a client of the old pod does not reach the next one. */
export const PORT_COOLING_MS = 60_000;

/** `lease` and `release` are synchronous: the caller runs them in the transaction with the pod's row. */
export function createPortService(ports: {
  leases: LeaseStore;
  probe: PortProbe;
  clock: Clock;
  range: PortRange;
}) {
  const { leases, probe, clock, range } = ports;

  const held = (podId: string) => leases.heldBy('port', podId);

  function freePort(): string {
    const taken = new Set(leases.list('port').map((lease) => lease.key));
    for (let port = range.first; port <= range.last; port += 1) {
      if (!taken.has(String(port))) return String(port);
    }
    throw new PortPoolExhausted(`no port is free in ${range.first}-${range.last}`);
  }

  const cool = (lease: Lease) => leases.setState(lease, 'cooling', clock.now() + PORT_COOLING_MS);

  /** The new port is taken before the old one is given up, so a full pool changes nothing. */
  function replaceOne(lease: Lease): void {
    leases.take({ kind: 'port', key: freePort(), podId: lease.pod_id, slot: lease.slot });
    cool(lease);
  }

  return {
    /** Whether nothing on the host listens on it just now. */
    isFree: (port: number): Promise<boolean> => probe(port),
    /** Whether a pod has it, or had it a moment ago. */
    isLeased: (port: number): boolean =>
      leases.list('port').some((lease) => lease.key === String(port)),
    /** Internal port -> host port of what the pod holds. */
    portsOf(podId: string): { internal: number; host: number }[] {
      return held(podId).map(({ slot, key }) => ({ internal: Number(slot), host: Number(key) }));
    },
    /** Adds what the pod has not got yet; throws PortPoolExhausted. */
    lease(podId: string, internalPorts: readonly number[]): void {
      const present = new Set(held(podId).map((lease) => lease.slot));
      for (const internal of internalPorts) {
        const slot = String(internal);
        if (present.has(slot)) continue;
        leases.take({ kind: 'port', key: freePort(), podId, slot });
      }
    },
    /** Gives up the pod's ports other than those for `keep`. */
    release(podId: string, keep: readonly number[] = []): void {
      for (const lease of held(podId)) {
        if (!keep.includes(Number(lease.slot))) cool(lease);
      }
    },
    /**
     * Exchanges the pod's published ports that something else on the host listens on. Call it only while no
     * container of the pod runs. Throws PortPoolExhausted when every port of the range has been tried.
     */
    async settle(podId: string, isPublished = (_internal: number) => true): Promise<void> {
      const rounds = range.last - range.first + 1;
      for (let round = 0; round < rounds; round += 1) {
        const current = held(podId).filter(({ slot }) => isPublished(Number(slot)));
        const free = await Promise.all(current.map((lease) => probe(Number(lease.key))));
        const busy = current.filter((_, index) => free[index] === false);
        if (busy.length === 0) return;
        for (const lease of busy) replaceOne(lease);
      }
      throw new PortPoolExhausted('every port of the range is in use by something else');
    },
    /** Exchanges the port that `message` (the engine's words) names, or all of the pod's if none is named. */
    replace(podId: string, message: string): void {
      const named = held(podId).filter((lease) => new RegExp(`:${lease.key}\\b`).test(message));
      for (const lease of named.length > 0 ? named : held(podId)) replaceOne(lease);
    },
    /** Returns the rested ports to the pool. */
    dropCooled: () => leases.dropCooled(clock.now()),
    /** How many ports could be leased now. */
    freeCount: () => range.last - range.first + 1 - leases.list('port').length,
  };
}

// MERGED agent/leases/port.service.ts: Whether a host port can be listened on, found by trying.
/** True when TCP and UDP on all IPv4 and IPv6 addresses can be bound right now. */
export type PortProbe = (port: number) => Promise<boolean>;

/** Errors that mean that the host has no such address family at all, not that the port is taken. */
const NO_SUCH_FAMILY = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL']);

export const probePort: PortProbe = async (port) => {
  const answers = await Promise.all([
    canListen(port, '0.0.0.0'),
    canListen(port, '::'),
    canBindUdp(port, 'udp4'),
    canBindUdp(port, 'udp6'),
  ]);
  return answers.every((free) => free);
};

function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(hasNoFamily(error)));
    server.listen({ port, host, ipv6Only: host === '::' }, () => {
      server.close(() => resolve(true));
    });
  });
}

function canBindUdp(port: number, type: 'udp4' | 'udp6'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    socket.once('error', (error) => {
      socket.close();
      resolve(hasNoFamily(error));
    });
    socket.bind(port, () => socket.close(() => resolve(true)));
  });
}

function hasNoFamily(error: Error): boolean {
  return 'code' in error && NO_SUCH_FAMILY.has(String(error.code));
}
