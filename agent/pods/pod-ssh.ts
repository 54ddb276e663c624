/** What pods need of whoever lets people log in to them. */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { LoginState } from './pod.containers.ts';
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
  /** Before a container that publishes the pod's SSH port itself. Rejects with PortNotLeft. */
  portLeft(row: PodRow): Promise<void>;
};
