/** Ports for SSH that agent/access implements, and paths of the mounts in pods that pods/ and access/ share. */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { LoginState } from './plan-facts.ts';
import type { PodRow } from './pod.store.ts';

export type SshView = Pick<PodView, 'ssh' | 'ssh_keys_hash'> & {
  condition: PodView['conditions'][number] | null;
};

export type PodSsh = {
  /** Stores the pod's host key. Call inside the transaction that admits the pod. */
  admit(podId: string): void;
  setKeys(row: PodRow, keys: readonly string[]): void;
  /** Copies the present keys to another generation that replaces the row's. */
  carryKeys(row: PodRow, generation: number): void;
  /** Publishes committed keys to the gateway. */
  publish(): void;
  loginOf(row: PodRow): LoginState;
  viewOf(row: PodRow): SshView;
  /** Read-only mounts with the keys of a pod that runs its own SSH server. */
  keyMounts(row: PodRow): { source: string; target: string }[];
  /** Waits until the gateway has closed the SSH port of a pod that publishes it itself. Rejects with PortNotReleased. */
  waitForPortRelease(row: PodRow): Promise<void>;
};

/** Folder in every pod with the agent's read-only mounts. */
export const MOUNT_POINT = '/.podwright';
/** Folder of authorized keys in a pod that runs its own SSH server. */
export const KEYS_MOUNT_POINT = `${MOUNT_POINT}/ssh`;
/** Path of the file with one key per line. The file is replaced whenever the keys change. */
export const AUTHORIZED_KEYS_FILE = `${KEYS_MOUNT_POINT}/authorized_keys`;
