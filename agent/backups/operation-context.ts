/** What the work on one operation has and may do. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import type { Sealing } from '#shared/signing/sealing.ts';
import type { DataRoot } from '../containers/volumes/pod-volumes.ts';
import type { PodPause } from '../pods/pod-pause.ts';
import type { Stage } from './operation.state.ts';
import type { OperationRow, OperationStore, Progress } from './operation.store.ts';
import type { Restic, Talk } from './restic.ts';

/** The agent ends: what is under way is left for the next one. */
export class AgentStopping extends Error {
  override name = 'AgentStopping';
}

/** The renter wants it no more. */
export class CancelRequested extends Error {
  override name = 'CancelRequested';
}

export type RunPorts = {
  executorId: string;
  store: OperationStore;
  sealing: Sealing;
  restic: Restic;
  pause: PodPause;
  dataRootsOf(podId: string): Promise<readonly DataRoot[]>;
  /** It is removed, or being removed. */
  isGone(podId: string): boolean;
  runCommand: RunCommand;
  /** Where drills of pods that are not here restore to; made when needed. */
  scratchFolder: string;
  /** A pod that ends within this time of its start does not run on a restored tree. */
  settlingMs: number;
  clock: Clock;
  log: Log;
};

/** What the work on one row may do to it. Every write throws when it is no move. */
export type Working<Row extends OperationRow> = {
  row(): Row;
  move(stage: Stage, patch: Partial<OperationRow>): void;
  note(patch: Partial<OperationRow>): void;
  /** Kept in memory until the next heartbeat. */
  advance(progress: Partial<Progress>): void;
  say(line: string): void;
  talk(paths: readonly (readonly [string, string])[]): Talk;
  /** Aborts with AgentStopping or CancelRequested. */
  signal: AbortSignal;
  /** Aborts with AgentStopping alone: for what has to be finished once it is begun. */
  stopping: AbortSignal;
  /** Called with each heartbeat. */
  onBeat(work: () => void): void;
};
