/** The ports of an operation's work, and its access to the operation's row. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import type { Sealing } from '#shared/signing/sealing.ts';
import type { ContainerFiles } from '../containers/volumes/container-files.ts';
import type { DataRoot } from '../containers/volumes/pod-volumes.ts';
import type { PodPause } from '../pods/pod-data.ts';
import type { Stage } from './operation.state.ts';
import type { OperationRow, OperationStore, Progress } from './operation.store.ts';
import type { Restic, ResticSession } from './restic.ts';

/** Abort reason when the agent stops. The next agent process continues unfinished work. */
export class AgentStopping extends Error {
  override name = 'AgentStopping';
}

/** Abort reason when the renter cancels the operation. */
export class CancelRequested extends Error {
  override name = 'CancelRequested';
}

export type RunPorts = {
  /** Records why an operation makes no progress at present, as a sentence for its renter. */
  meet(operationId: string, obstacle: string): void;
  executorId: string;
  store: OperationStore;
  sealing: Sealing;
  restic: Restic;
  pause: PodPause;
  dataRootsOf(podId: string): Promise<readonly DataRoot[]>;
  /** File system of the pod's container; `absent` if the pod has none at present. */
  containerFilesOf(podId: string): Promise<ContainerFiles | 'absent' | 'unreadable'>;
  /** Bytes that the pod may still write; null if that is unknown or unlimited. */
  freeBytesOf(podId: string): number | null;
  /** Measures folders that no process changes; null if they cannot be measured. */
  folderBytes(folders: readonly string[]): Promise<number | null>;
  /** Returns true for a pod that is removed or being removed. */
  isGone(podId: string): boolean;
  runCommand: RunCommand;
  /** Folder for drills of pods that are not on this host, and mount point of jails; created when needed. */
  scratchFolder: string;
  /** A pod that ends within this time after its start is not considered to run on the restored tree. */
  settlingMs: number;
  clock: Clock;
  log: Log;
};

/** Access of an operation's work to its row. Every write throws if the transition is not in the state table. */
export type OperationContext<Row extends OperationRow> = {
  row(): Row;
  move(stage: Stage, patch: Partial<OperationRow>): void;
  note(patch: Partial<OperationRow>): void;
  /** Updates the progress in memory; the next heartbeat writes it. */
  advance(progress: Partial<Progress>): void;
  appendLog(line: string): void;
  session(paths: readonly (readonly [string, string])[]): ResticSession;
  /** Aborts with AgentStopping or CancelRequested. */
  signal: AbortSignal;
  /** Aborts only with AgentStopping: for steps that must complete once begun. */
  stopping: AbortSignal;
  /** Sets the function to call at each heartbeat. */
  onBeat(work: () => void): void;
};
