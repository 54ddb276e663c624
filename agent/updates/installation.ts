/**
 * How this agent is installed, as far as updates go: one port for the agent, which gets everything ready, and one for
 * the switcher, which replaces it. Every method may be repeated after having been cut off anywhere.
 */
import type { Passage, Target } from './update.state.ts';

export type Installation = {
  kind: 'image-digest';
  /** Digests that the running image has in the configured repository. Rejects where this agent does not run as told. */
  running(): Promise<readonly string[]>;
  /** Whether there is room for another version beside what runs, with as much to spare. */
  hasRoom(): Promise<boolean>;
  /** Has the version at hand, and that very one. Ends with the signal. */
  fetch(target: Target, signal: AbortSignal): Promise<void>;
  /** Makes it ready to be started, with the settings of what runs. */
  stage(target: Target): Promise<void>;
  /** Drops what was made ready and never started. */
  unstage(): Promise<void>;
  /** What the way back needs of what runs. */
  passage(): Promise<Pick<Passage, 'old_id' | 'restart_policy'>>;
  /** Starts the switcher unless it runs: a short-lived process of the version that runs now, apart from the agent. */
  startSwitcher(): Promise<void>;
};

/** How the new version is, seen from outside. */
export type Look = {
  /** It was started and has not ended since. */
  isAlive: boolean;
  /** Where it can be asked; null while it has no address. */
  host: string | null;
};

export type Replacement = {
  /** Why the target may not be started, looked at before anything is touched; null: it may. */
  refusal(target: Target, passage: Passage): Promise<string | null>;
  /** The old version has ended when it resolves, and nothing but us starts it again. */
  stopOld(target: Target, passage: Passage): Promise<void>;
  startNew(target: Target, passage: Passage): Promise<void>;
  look(target: Target): Promise<Look>;
  /** The last lines that the new version wrote. */
  lastWords(target: Target): Promise<string>;
  /** The new version has ended when it resolves, and nothing starts it again. False: somebody has put another in its place. */
  dropNew(target: Target, passage: Passage): Promise<boolean>;
  /** As it was before. */
  startOld(passage: Passage): Promise<void>;
  /** Drops what is older than the version before this one. */
  tidy(target: Target, passage: Passage): Promise<void>;
};
