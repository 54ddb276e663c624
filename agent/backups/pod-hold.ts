/** What restores need of pods: have one stand still while its tree is exchanged, and see it run again. */

/**
 * - `running`: a container of it runs, and nothing is under way; `stopped`: nothing of it runs, nor will by itself
 * - `moving`: something is under way; `failed`: it rests; `gone`: it is removed, or being removed
 * - `unknown`: the engine does not answer
 */
export type PodStanding = 'running' | 'stopped' | 'moving' | 'failed' | 'gone' | 'unknown';

export type PodHold = {
  /** Has the pod looked at: whether it is held follows from the rows of operations (`holdsPod`). */
  wake(podId: string): void;
  standingOf(podId: string): Promise<PodStanding>;
};
