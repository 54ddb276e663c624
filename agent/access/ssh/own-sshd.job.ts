/** Checks the SSH servers of pods that bring their own, by reading their banners. */

import { connect } from 'node:net';
import type { PodCondition } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { PortService } from '../../leases/port.service.ts';
import type { PodRow } from '../../pods/pod.store.ts';
import type { PodRecords } from '../../pods/pod-records.ts';
import { SSH_PORT, specOf } from '../../pods/pod-row.ts';

export const OWN_SSHD_INTERVAL_MS = 2_000;
/** Recheck interval after a server was found ready. Long, because SSH servers log every connection. */
const RECHECK_MS = 60_000;
const MAX_PARALLEL = 8;

/** Result of the last check. `run` identifies the start of the container to which the result applies. */
type Finding = { run: string; ready: boolean; sinceMs: number; askedMs: number };

export type OwnSshd = ReturnType<typeof createOwnSshd>;

/** Findings are stored in memory only. */
export function createOwnSshd(deps: {
  records: PodRecords;
  ports: PortService;
  readBanner: ReadBanner;
  clock: Clock;
}) {
  const { records, ports, readBanner, clock } = deps;
  const findings = new Map<string, Finding>();
  const places = createSemaphore(MAX_PARALLEL);

  function portOf(row: PodRow): number | null {
    if (row.desired !== 'running' || !specOf(row).publish_own_sshd) return null;
    return ports.portsOf(row.id).find(({ internal }) => internal === SSH_PORT)?.host ?? null;
  }

  function findingOf(row: PodRow): Finding | null {
    const last = findings.get(row.id);
    return row.phase === 'running' && last?.run === runOf(row) ? last : null;
  }

  async function check(row: PodRow, port: number): Promise<void> {
    const before = findingOf(row);
    const askedMs = clock.now();
    if (before?.ready === true && askedMs - before.askedMs < RECHECK_MS) return;
    const ready = await readBanner(port);
    const sinceMs = before?.ready === ready ? before.sinceMs : clock.now();
    findings.set(row.id, { run: runOf(row), ready, sinceMs, askedMs });
  }

  return {
    async runOnce(): Promise<void> {
      const rows = records.list().filter((row) => row.phase === 'running');
      const checks = rows.flatMap((row) => {
        const port = portOf(row);
        return port === null ? [] : [places.run(() => check(row, port))];
      });
      const running = new Set(rows.map((row) => row.id));
      for (const podId of findings.keys()) if (!running.has(podId)) findings.delete(podId);
      await Promise.all(checks);
    },
    /** Null for a pod that does not bring its own server at port 22. */
    conditionOf(row: PodRow): PodCondition | null {
      if (portOf(row) === null) return null;
      const present = findingOf(row);
      const ready = present?.ready === true;
      return {
        type: 'SshReady',
        status: ready,
        reason: ready ? 'Ok' : 'NotYet',
        message: ready ? '' : 'The SSH server of the image has not answered yet',
        last_transition_ms: present?.sinceMs ?? row.phase_since_ms,
      };
    },
  };
}

function runOf({ container_id, phase_since_ms }: PodRow): string {
  return `${container_id} ${phase_since_ms}`;
}

const BANNER_TIMEOUT_MS = 3_000;
/** Maximum bytes until the banner: servers may send other lines before it (RFC 4253, 4.2). */
const MAX_BYTES = 8_192;
const BANNER = /^SSH-2\.0-/m;
const LOOPBACK = '127.0.0.1';

export type ReadBanner = (port: number) => Promise<boolean>;

/**
 * Returns true if an SSH server answers at a port of this host. An accepted connection proves nothing: Docker's proxy
 * accepts connections even if nothing listens behind it.
 */
export function createReadBanner(clock: Clock): ReadBanner {
  return (port) =>
    new Promise((resolve) => {
      const signal = clock.deadline(BANNER_TIMEOUT_MS);
      const socket = connect({ host: LOOPBACK, port });
      let received = '';
      const end = (found: boolean) => {
        socket.destroy();
        resolve(found);
      };
      signal.addEventListener('abort', () => end(false), { once: true });
      socket.on('data', (data) => {
        received += data.toString('latin1');
        if (BANNER.test(received)) end(true);
        else if (received.length > MAX_BYTES) end(false);
      });
      socket.once('error', () => end(false));
      socket.once('close', () => end(false));
    });
}
