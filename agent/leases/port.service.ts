/** Leases host ports of the configured range to pods. A pod keeps its ports until its removal. */

import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Lease, LeaseStore } from './lease.store.ts';

export type PortRange = { first: number; last: number };
export type PortService = ReturnType<typeof createPortService>;

/** No port of the range is free. */
export class PortPoolExhausted extends Error {
  override name = 'PortPoolExhausted';
}

/** Time for which a released port is not leased again, so that clients of the old pod do not reach another pod. */
export const PORT_COOLING_MS = 60_000;
/**
 * Cooling time of a port at which a pod has run its own SSH server: clients remember that server's host key for the
 * port.
 */
export const OWN_SSHD_COOLING_MS = 86_400_000;

/** `lease` and `release` are synchronous: call them in the transaction that writes the pod's row. */
export function createPortService(ports: {
  leases: LeaseStore;
  probe: PortProbe;
  clock: Clock;
  range: PortRange;
}) {
  const { leases, probe, clock, range } = ports;

  const held = (podId: string) => leases.heldBy('port', podId);

  /**
   * Leases a free port: for a pod's own SSH server the highest free port of the upper half of the range, otherwise the
   * lowest free port. Therefore such servers rarely get a port for which clients remember the gateway's host key, and
   * their cooling ports never occupy the whole range.
   */
  function takeFree(podId: string, slot: string, coolingMs: number): void {
    const taken = new Set(leases.list('port').map((lease) => lease.key));
    const isOwnSshd = coolingMs >= OWN_SSHD_COOLING_MS;
    const others = range.last - range.first;
    const tries = isOwnSshd ? Math.floor(others / 2) : others;
    for (let passed = 0; passed <= tries; passed += 1) {
      const key = String(isOwnSshd ? range.last - passed : range.first + passed);
      if (taken.has(key)) continue;
      leases.take({ kind: 'port', key, podId, slot, coolingMs });
      return;
    }
    const first = isOwnSshd ? range.last - tries : range.first;
    throw new PortPoolExhausted(`no port is free in ${first}-${range.last}`);
  }

  function cool(lease: Lease): void {
    const coolingMs = Math.max(lease.cooling_ms, PORT_COOLING_MS);
    leases.setState(lease, 'cooling', clock.now() + coolingMs);
  }

  /** Leases the new port before it releases the old one, so that a full pool changes nothing. */
  function replaceOne(lease: Lease): void {
    takeFree(lease.pod_id, lease.slot, lease.cooling_ms);
    cool(lease);
  }

  return {
    /** True if no process on the host listens on the port. */
    isFree: (port: number): Promise<boolean> => probe(port),
    /** True if a pod has the port, or released it so recently that it still cools. */
    isLeased: (port: number): boolean =>
      leases.list('port').some((lease) => lease.key === String(port)),
    /** Internal and host ports of the pod's leases. */
    portsOf(podId: string): { internal: number; host: number }[] {
      return held(podId).map(({ slot, key }) => ({ internal: Number(slot), host: Number(key) }));
    },
    /**
     * Leases missing ports. `ownSshd` is the internal port of an SSH server in the pod, which has another host key than
     * the gateway; null without one. Throws PortPoolExhausted.
     */
    lease(podId: string, internalPorts: readonly number[], ownSshd: number | null): void {
      const present = new Map(held(podId).map((lease) => [lease.slot, lease]));
      for (const internal of internalPorts) {
        const slot = String(internal);
        const coolingMs = internal === ownSshd ? OWN_SSHD_COOLING_MS : PORT_COOLING_MS;
        const lease = present.get(slot);
        if (lease === undefined) takeFree(podId, slot, coolingMs);
        // The longer cooling time remains if an edit removes the server.
        else if (coolingMs > lease.cooling_ms) leases.setCooling(lease, coolingMs);
      }
    },
    /** Releases the pod's ports except those for the internal ports `keep`. */
    release(podId: string, keep: readonly number[]): void {
      for (const lease of held(podId)) if (!keep.includes(Number(lease.slot))) cool(lease);
    },
    /**
     * Replaces the pod's published ports that are in use by other processes. Call only while no container of the pod
     * runs. Throws PortPoolExhausted if every port of the range was tried.
     */
    async replaceBusy(podId: string, isPublished = (_internal: number) => true): Promise<void> {
      const rounds = range.last - range.first + 1;
      for (let round = 0; round < rounds; round += 1) {
        const current = held(podId).filter(({ slot }) => isPublished(Number(slot)));
        const free = await Promise.all(current.map((lease) => probe(Number(lease.key))));
        const busy = current.filter((_, index) => free[index] === false);
        if (busy.length === 0) return;
        for (const lease of busy) replaceOne(lease);
      }
      throw new PortPoolExhausted('other processes use every port of the range');
    },
    /** Replaces the port that the engine's error `message` names, or all ports of the pod if it names none. */
    replace(podId: string, message: string): void {
      const named = held(podId).filter((lease) => new RegExp(`:${lease.key}\\b`).test(message));
      for (const lease of named.length > 0 ? named : held(podId)) replaceOne(lease);
    },
    /** Makes released ports available again when their cooling time is over. */
    dropCooled: () => leases.dropCooled(clock.now()),
    /** Number of ports that can be leased now. */
    freeCount: () => range.last - range.first + 1 - leases.list('port').length,
  };
}

/** Returns true if TCP and UDP on all IPv4 and IPv6 addresses can be bound now. */
export type PortProbe = (port: number) => Promise<boolean>;

/** Errors that mean that the host lacks the address family, not that the port is in use. */
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
