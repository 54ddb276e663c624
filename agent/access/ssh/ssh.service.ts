/** Logging in to pods, on the agent's side: host keys, keys in force, and what the gateway is to serve. */
import { type PodSpec, sshKeysHash } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSshKeyPair, sshFingerprint } from '#shared/signing/openssh-key.ts';
import type { PortService } from '../../leases/port.service.ts';
import type { LoginState } from '../../pods/plan-facts.ts';
import type { PodRow } from '../../pods/pod.store.ts';
import type { PodRecords } from '../../pods/pod-records.ts';
import { isGatewayPort, SSH_PORT, servedPorts, specOf } from '../../pods/pod-row.ts';
import { KEYS_MOUNT_POINT, type SshView } from '../../pods/pod-ssh.ts';
import { PortNotLeft } from '../../pods/step-failure.ts';
import type { GatewayPod, GatewayPodStatus } from './gateway-files.ts';
import type { GatewayLink } from './gateway-link.ts';
import type { KeyFolders } from './key-folders.ts';
import type { OwnSshd } from './own-sshd.job.ts';
import type { SshStore } from './ssh.store.ts';

export type SshService = ReturnType<typeof createSshService>;

/** Whom shells in pods run as: templates name no user yet. */
export const POD_USER = 'root';
/** How long a gateway that lives may take to leave a port; it follows its file within moments. */
export const LEAVE_WITHIN_MS = 10_000;
const LEAVE_POLL_MS = 50;

/** `publishSoon` after every change of a pod or its keys. */
export function createSshService(deps: {
  records: PodRecords;
  ports: PortService;
  store: SshStore;
  link: GatewayLink;
  keyFolders: KeyFolders;
  ownSshd: OwnSshd;
  clock: Clock;
  /** Every pod has the sftp-server mounted. */
  sftp: boolean;
  random: Random;
  log: Log;
}) {
  const { records, ports, store, link, keyFolders, random, clock, log } = deps;
  let publishing = false;
  let closed = false;

  /** Null for a pod that the gateway has nothing to do with. */
  function portOf(row: PodRow, spec: PodSpec): number | null {
    const leased = servedPorts(row, ports.portsOf(row.id));
    const lease = leased.find(({ internal }) => isGatewayPort(spec, internal));
    return row.desired === 'running' ? (lease?.host ?? null) : null;
  }

  /** A later generation's own list ends the reign of one that was put before it. */
  function keysOf(row: PodRow, spec: PodSpec): readonly string[] {
    const put = store.get(row.id);
    return put?.keys_generation === row.generation
      ? (JSON.parse(put.keys_json) as string[])
      : spec.ssh_public_keys;
  }

  function gatewayPod(row: PodRow): GatewayPod[] {
    const spec = specOf(row);
    const port = portOf(row, spec);
    const host_key = store.get(row.id)?.host_key;
    if (port === null || host_key === undefined) return [];
    return [
      {
        id: row.id,
        port,
        container_id: row.phase === 'running' ? row.container_id : null,
        user: POD_USER,
        host_key,
        authorized_keys: [...keysOf(row, spec)],
        environment_names: Object.keys(spec.environment),
        sftp: deps.sftp,
      },
    ];
  }

  function publish(): void {
    publishing = false;
    if (closed) return;
    const rows = records.list();
    link.publish({ pods: rows.flatMap(gatewayPod) });
    writeKeyFolders(rows);
  }

  /** For pods that bring their own server. */
  function writeKeyFolders(rows: readonly PodRow[]): void {
    const own = rows.filter((row) => row.phase !== 'removed' && specOf(row).publish_own_sshd);
    try {
      for (const row of own) keyFolders.write(row.id, keysOf(row, specOf(row)));
      keyFolders.retain(new Set(own.map((row) => row.id)));
    } catch (error) {
      // The next change, or the next start, tries again.
      log.error(
        { detail: messageOf(error) },
        'keys could not be written for a pod with its own sshd',
      );
    }
  }

  /** What the gateway said of this very port and container; null when it is away or not so far. */
  function statusOf(row: PodRow, port: number): GatewayPodStatus | null {
    const status = link.statusOf(row.id);
    return status?.port === port && status.container_id === row.container_id ? status : null;
  }

  function viewOf(row: PodRow): SshView {
    const spec = specOf(row);
    const ssh_keys_hash = sshKeysHash(keysOf(row, spec));
    const port = portOf(row, spec);
    const known = store.get(row.id);
    if (port === null || known === null) {
      return { ssh: null, ssh_keys_hash, condition: deps.ownSshd.conditionOf(row) };
    }
    const status = statusOf(row, port);
    const ready = row.phase === 'running' && status?.ready === true;
    return {
      ssh: { port, host_key_fingerprint: known.fingerprint, ready },
      ssh_keys_hash,
      condition: {
        type: 'SshReady',
        status: ready,
        reason: ready ? 'Ok' : 'NotYet',
        message: ready ? '' : (status?.message ?? 'The SSH gateway has not served this pod yet'),
        last_transition_ms: status?.since_ms ?? row.phase_since_ms,
      },
    };
  }

  return {
    /** Inside the transaction that admits the pod. */
    admit(podId: string): void {
      if (store.get(podId) !== null) return;
      const pair = createSshKeyPair(random, 'podwright');
      const fingerprint = sshFingerprint(pair.publicKey);
      store.insert({ pod_id: podId, host_key: pair.privateKeyPem, fingerprint });
    },
    setKeys: (row: PodRow, keys: readonly string[]) => store.setKeys(row.id, row.generation, keys),
    /** The keys in force stay so when another generation takes the place of the row's. */
    carryKeys: (row: PodRow, generation: number) =>
      store.setKeys(row.id, generation, keysOf(row, specOf(row))),
    /** Whether one can log in to the present container, as far as the gateway has found out. */
    loginOf(row: PodRow): LoginState {
      const port = portOf(row, specOf(row));
      if (port === null) return { kind: 'none' };
      const status = statusOf(row, port);
      if (status === null) return { kind: 'unknown' };
      return status.ready ? { kind: 'works' } : { kind: 'fails', message: status.message };
    },
    /** Once the transaction under way has ended; any number of calls until then count as one. */
    publishSoon(): void {
      if (publishing) return;
      publishing = true;
      queueMicrotask(publish);
    },
    publish,
    viewOf,
    /** The folder of keys that a pod with its own server gets mounted, ready to be so. */
    keyMounts(row: PodRow): { source: string; target: string }[] {
      const spec = specOf(row);
      if (!spec.publish_own_sshd) return [];
      return [{ source: keyFolders.write(row.id, keysOf(row, spec)), target: KEYS_MOUNT_POINT }];
    },
    /**
     * Before a container is made or started that publishes the pod's SSH port itself: waits until the gateway
     * has left it, since a port that is taken would be exchanged for another. Throws PortNotLeft.
     */
    async portLeft(row: PodRow): Promise<void> {
      const lease = ports.portsOf(row.id).find(({ internal }) => internal === SSH_PORT);
      if (lease === undefined || !specOf(row).publish_own_sshd) return;
      const untilMs = clock.monotonicMs() + LEAVE_WITHIN_MS;
      const isServed = () => link.statusOf(row.id)?.port === lease.host;
      while (isServed() && !(await ports.isFree(lease.host))) {
        if (clock.monotonicMs() >= untilMs)
          throw new PortNotLeft('The SSH gateway still has the port');
        await clock.sleep(LEAVE_POLL_MS);
      }
    },
    /**
     * Leases other ports in place of those that something else on this host has. While a container is being
     * replaced that may be the old one, which had the port for a server of its own and is about to leave it.
     */
    exchangeTakenPorts(): void {
      for (const row of records.list()) {
        const port = portOf(row, specOf(row));
        if (port === null || (row.observed_generation > 0 && row.phase !== 'running')) continue;
        if (statusOf(row, port)?.port_taken !== true) continue;
        log.warn({ pod_id: row.id, port }, 'the SSH port is taken; leasing another');
        records.transaction(() => ports.replace(row.id, `:${port}`));
        publish();
      }
    },
    close(): void {
      closed = true;
    },
  };
}
