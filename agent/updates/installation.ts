/**
 * The two ports that differ by the kind of installation: the agent prepares a new version with one, the switcher
 * installs it with the other. Everything else of an update is shared. Every method can be repeated after an
 * interruption at any point.
 */
import type { RollbackPoint, Target } from './update.state.ts';

/** The agent's side. */
export type Installation = {
  /** Digests of the running image in the configured repository. Rejects if the agent does not run as configured. */
  running(): Promise<readonly string[]>;
  /** Returns true if the disk has space for another version, and as much again in reserve. */
  hasSpace(): Promise<boolean>;
  /** Returns true if the version is already staged, so that its image is not needed. */
  has(target: Target): boolean;
  /** Prepares the version for its start, with the settings of the running one. Its image is already fetched. */
  stage(target: Target): Promise<void>;
  /** Removes a version that was staged and never started. */
  unstage(): Promise<void>;
  /** Returns the data that is needed to return to the running version. */
  rollbackPoint(): Promise<Pick<RollbackPoint, 'old_id' | 'restart_policy'>>;
  /** Starts the switcher unless it runs: a short-lived process of the running version, outside the agent. */
  startSwitcher(): Promise<void>;
};

export type NewVersionStatus = {
  /** True if it was started and has not ended since. */
  isAlive: boolean;
  /** Host of its public routes; null while it has no address. */
  host: string | null;
};

/** The switcher's side. */
export type Replacement = {
  /** Returns why the target must not be started, or null. Called before anything is changed. */
  refusal(target: Target, point: RollbackPoint): Promise<string | null>;
  /** Stops the old version. Afterwards only the switcher can start it again. */
  stopOld(target: Target, point: RollbackPoint): Promise<void>;
  startNew(target: Target, point: RollbackPoint): Promise<void>;
  status(target: Target): Promise<NewVersionStatus>;
  /** The last log lines of the new version. */
  lastLogLines(target: Target): Promise<string>;
  /** Stops the new version and prevents restarts. Returns false if another version was installed since the switch. */
  removeNew(target: Target, point: RollbackPoint): Promise<boolean>;
  startOld(point: RollbackPoint): Promise<void>;
  /** Removes versions older than the previous one. */
  cleanUp(target: Target, point: RollbackPoint): Promise<void>;
};
