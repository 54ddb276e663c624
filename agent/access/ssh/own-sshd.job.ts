/** Pods that bring their own SSH server: whether it speaks, found by reading its banner (agent reference 12.2). */

import { connect } from 'node:net';
import type { PodCondition } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { PortService } from '../../leases/port.service.ts';
import type { PodRow } from '../../pods/pod.store.ts';
import type { PodRecords } from '../../pods/pod-records.ts';
import { SSH_PORT, specOf } from '../../pods/pod-row.ts';

export const OWN_SSHD_INTERVAL_MS = 2_000;
/** A server that has spoken is asked again this much later: it notes each of our visits. */
const ASK_AGAIN_MS = 60_000;
const MAX_PARALLEL = 8;

/** `run`: which of the container's runs it was found in. */
type Found = { run: string; ready: boolean; sinceMs: number; askedMs: number };

export type OwnSshd = ReturnType<typeof createOwnSshd>;

/** What it found is forgotten with the process, and found again. */
export function createOwnSshd(deps: {
  records: PodRecords;
  ports: PortService;
  readBanner: ReadBanner;
  clock: Clock;
}) {
  const { records, ports, readBanner, clock } = deps;
  const found = new Map<string, Found>();
  const places = createSemaphore(MAX_PARALLEL);

  function portOf(row: PodRow): number | null {
    if (row.desired !== 'running' || !specOf(row).publish_own_sshd) return null;
    return ports.portsOf(row.id).find(({ internal }) => internal === SSH_PORT)?.host ?? null;
  }

  function presentOf(row: PodRow): Found | null {
    const last = found.get(row.id);
    return row.phase === 'running' && last?.run === runOf(row) ? last : null;
  }

  async function ask(row: PodRow, port: number): Promise<void> {
    const before = presentOf(row);
    const askedMs = clock.now();
    if (before?.ready === true && askedMs - before.askedMs < ASK_AGAIN_MS) return;
    const ready = await readBanner(port);
    const sinceMs = before?.ready === ready ? before.sinceMs : clock.now();
    found.set(row.id, { run: runOf(row), ready, sinceMs, askedMs });
  }

  return {
    async runOnce(): Promise<void> {
      const rows = records.list().filter((row) => row.phase === 'running');
      const asked = rows.flatMap((row) => {
        const port = portOf(row);
        return port === null ? [] : [places.run(() => ask(row, port))];
      });
      const running = new Set(rows.map((row) => row.id));
      for (const podId of found.keys()) if (!running.has(podId)) found.delete(podId);
      await Promise.all(asked);
    },
    /** Null for a pod without a server of its own at port 22. */
    conditionOf(row: PodRow): PodCondition | null {
      if (portOf(row) === null) return null;
      const present = presentOf(row);
      const ready = present?.ready === true;
      return {
        type: 'SshReady',
        status: ready,
        reason: ready ? 'Ok' : 'NotYet',
        message: ready ? '' : 'The SSH server of the image has not spoken yet',
        last_transition_ms: present?.sinceMs ?? row.phase_since_ms,
      };
    },
  };
}

function runOf({ container_id, phase_since_ms }: PodRow): string {
  return `${container_id} ${phase_since_ms}`;
}

// MERGED agent/access/ssh/own-sshd.job.ts: Whether an SSH server speaks at a port: Docker's proxy takes connections even when nothing listens behind it.
const BANNER_WITHIN_MS = 3_000;
/** Servers may say something before it (RFC 4253 4.2). */
const MAX_BYTES = 8_192;
const BANNER = /^SSH-2\.0-/m;
const LOOPBACK = '127.0.0.1';

export type ReadBanner = (port: number) => Promise<boolean>;

/** At a port of this host. */
export function createReadBanner(clock: Clock): ReadBanner {
  return (port) =>
    new Promise((resolve) => {
      const signal = clock.deadline(BANNER_WITHIN_MS);
      const socket = connect({ host: LOOPBACK, port });
      let heard = '';
      const end = (found: boolean) => {
        socket.destroy();
        resolve(found);
      };
      signal.addEventListener('abort', () => end(false), { once: true });
      socket.on('data', (data) => {
        heard += data.toString('latin1');
        if (BANNER.test(heard)) end(true);
        else if (heard.length > MAX_BYTES) end(false);
      });
      socket.once('error', () => end(false));
      socket.once('close', () => end(false));
    });
}
