/** SSH access to pods, on the agent's side: host keys, authorized keys, and the gateway's snapshot. */
import { type PodSpec, sshKeysHash } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { publicKeyOf, sshFingerprint } from '#shared/signing/openssh-key.ts';
import type { PortService } from '../../leases/port.service.ts';
import type { LoginState } from '../../pods/plan-facts.ts';
import type { PodRow } from '../../pods/pod.store.ts';
import type { PodRecords } from '../../pods/pod-records.ts';
import { isGatewayPort, SSH_PORT, servedPorts, specOf } from '../../pods/pod-row.ts';
import { KEYS_MOUNT_POINT, type SshView } from '../../pods/pod-ssh.ts';
import { PortNotReleased } from '../../pods/step-failure.ts';
import type { GatewayPod, GatewayPodStatus } from './gateway-files.ts';
import type { GatewayLink } from './gateway-link.ts';
import type { KeyFolders } from './key-folders.ts';
import type { OwnSshd } from './own-sshd.job.ts';
import type { SshStore } from './ssh.store.ts';

export type SshService = ReturnType<typeof createSshService>;

type SpecifiedPod = { row: PodRow; spec: PodSpec };

/** User of shells in pods; templates do not name one. */
export const POD_USER = 'root';
/** Timeout for the gateway to release a port after the snapshot changed. */
export const RELEASE_TIMEOUT_MS = 10_000;
const RELEASE_POLL_MS = 50;

/** Callers call `publishSoon` after every change of a pod or its keys. */
export function createSshService(deps: {
  records: PodRecords;
  ports: PortService;
  store: SshStore;
  link: GatewayLink;
  keyFolders: KeyFolders;
  ownSshd: OwnSshd;
  clock: Clock;
  /** Host key of new pods, in OpenSSH's file format. */
  hostKey: string;
  /** True if the sftp-server is mounted in every pod. */
  sftp: boolean;
  /** True while the agent rebuilds a lost store: pods that it does not know yet then keep their keys. */
  isRebuilding(): boolean;
  log: Log;
}) {
  const { records, ports, store, link, keyFolders, hostKey, clock, log } = deps;
  let publishing = false;
  let closed = false;

  /** Null for a pod that the gateway does not serve. */
  function portOf(row: PodRow, spec: PodSpec): number | null {
    const leased = servedPorts(row, ports.portsOf(row.id));
    const lease = leased.find(({ internal }) => isGatewayPort(spec, internal));
    return row.desired === 'running' ? (lease?.host ?? null) : null;
  }

  /** Returns the pod's authorized keys. Keys that were set for this generation replace the keys of the spec. */
  function keysOf(row: PodRow, spec: PodSpec): readonly string[] {
    const put = store.get(row.id);
    return put?.keys_generation === row.generation
      ? (JSON.parse(put.keys_json) as string[])
      : spec.ssh_public_keys;
  }

  function gatewayPod({ row, spec }: SpecifiedPod): GatewayPod[] {
    const port = portOf(row, spec);
    const host_key = port === null ? undefined : store.get(row.id)?.host_key;
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

  /** Runs after every write, so it parses each spec once, and none of a removed pod. */
  function publish(): void {
    publishing = false;
    if (closed) return;
    const pods = records.live().map((row) => ({ row, spec: specOf(row) }));
    link.publish({ pods: pods.flatMap(gatewayPod) });
    writeKeyFolders(pods);
  }

  /** Writes the keys of pods that bring their own server. */
  function writeKeyFolders(pods: readonly SpecifiedPod[]): void {
    const own = pods.filter(({ spec }) => spec.publish_own_sshd);
    try {
      for (const { row, spec } of own) keyFolders.write(row.id, keysOf(row, spec));
      if (!deps.isRebuilding()) keyFolders.retain(new Set(own.map(({ row }) => row.id)));
    } catch (error) {
      // Retried with the next change or the next start.
      log.error(
        { detail: messageOf(error) },
        'keys for a pod with its own sshd could not be written',
      );
    }
  }

  /**
   * The gateway's status for this port and container; null if the gateway is not running or has not reported this port
   * and container.
   */
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
      ssh: {
        port,
        host_key_fingerprint: known.fingerprint,
        host_key: publicKeyOf(known.host_key),
        ready,
      },
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
    /**
     * Stores the host key, which stays the same until the pod is removed. Pods that older agent versions created have a
     * separate key each. Call it inside the transaction that admits the pod.
     */
    admit(podId: string): void {
      if (store.get(podId) !== null) return;
      const fingerprint = sshFingerprint(publicKeyOf(hostKey) ?? '');
      store.insert({ pod_id: podId, host_key: hostKey, fingerprint });
    },
    setKeys: (row: PodRow, keys: readonly string[]) => store.setKeys(row.id, row.generation, keys),
    /** Carries the current keys over to another generation of the pod. */
    carryKeys: (row: PodRow, generation: number) =>
      store.setKeys(row.id, generation, keysOf(row, specOf(row))),
    /** State of logins to the current container, as observed by the gateway. */
    loginOf(row: PodRow): LoginState {
      const port = portOf(row, specOf(row));
      if (port === null) return { kind: 'none' };
      const status = statusOf(row, port);
      if (status === null) return { kind: 'unknown' };
      return status.ready ? { kind: 'works' } : { kind: 'fails', message: status.message };
    },
    /** Publishes once after the current synchronous work, however often it is called during that work. */
    publishSoon(): void {
      if (publishing) return;
      publishing = true;
      queueMicrotask(publish);
    },
    publish,
    viewOf,
    /** Returns the mount of the key folder for a pod that brings its own server. */
    keyMounts(row: PodRow): { source: string; target: string }[] {
      const spec = specOf(row);
      if (!spec.publish_own_sshd) return [];
      return [{ source: keyFolders.write(row.id, keysOf(row, spec)), target: KEYS_MOUNT_POINT }];
    },
    /**
     * Waits until the gateway has released the SSH port. Call it before creating or starting a container that
     * publishes the port itself; otherwise the agent would replace the port, which is in use, by another.
     * Throws PortNotReleased.
     */
    async waitForPortRelease(row: PodRow): Promise<void> {
      const lease = ports.portsOf(row.id).find(({ internal }) => internal === SSH_PORT);
      if (lease === undefined || !specOf(row).publish_own_sshd) return;
      const untilMs = clock.monotonicMs() + RELEASE_TIMEOUT_MS;
      const isServed = () => link.statusOf(row.id)?.port === lease.host;
      while (isServed() && !(await ports.isFree(lease.host))) {
        if (clock.monotonicMs() >= untilMs)
          throw new PortNotReleased('The SSH gateway has not released the port');
        await clock.sleep(RELEASE_POLL_MS);
      }
    },
    /**
     * Replaces every leased SSH port that another program on this host uses. Skips pods whose container is being
     * replaced: the old container may still use the port and is about to release it.
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
