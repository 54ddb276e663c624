/** What pods need of whoever lets people log in to them. */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { LoginState } from './plan-facts.ts';
import type { PodRow } from './pod.store.ts';

/** The parts of a pod's view that are about logging in. */
export type SshView = Pick<PodView, 'ssh' | 'ssh_keys_hash'> & {
  condition: PodView['conditions'][number] | null;
};

export type PodSsh = {
  /** Inside the transaction that admits the pod. */
  admit(podId: string): void;
  setKeys(row: PodRow, keys: readonly string[]): void;
  /** The keys in force stay so when another generation takes the place of the row's. */
  carryKeys(row: PodRow, generation: number): void;
  /** After a change of keys, once it is committed. */
  publish(): void;
  loginOf(row: PodRow): LoginState;
  viewOf(row: PodRow): SshView;
  /** Read-only mounts with the keys of a pod that runs its own SSH server. */
  keyMounts(row: PodRow): { source: string; target: string }[];
  /** Before a container that publishes the pod's SSH port itself. Rejects with PortNotLeft. */
  portLeft(row: PodRow): Promise<void>;
};

/** Where every pod finds what the agent mounts. */
export const MOUNT_POINT = '/.podwright';
/** Where a pod with an SSH server of its own finds its folder of keys. */
export const KEYS_MOUNT_POINT = `${MOUNT_POINT}/ssh`;
/** One key per line, replaced whole whenever the keys change. */
export const AUTHORIZED_KEYS_FILE = `${KEYS_MOUNT_POINT}/authorized_keys`;
