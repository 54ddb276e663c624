/** Steps of a start, from the phase of a pod. Pure. */
import type { PodDetailResponse } from '../api/api.gen.ts';

type Phase = NonNullable<PodDetailResponse['phase']>;
export type StartStep = { phase: Phase; title: string; state: 'done' | 'now' | 'future' };

const STEPS: readonly { phase: Phase; title: string }[] = [
  { phase: 'queued', title: 'Wait for the node' },
  { phase: 'building', title: 'Build the image' },
  { phase: 'pulling', title: 'Download the image' },
  { phase: 'starting', title: 'Start the container' },
  { phase: 'restoring', title: 'Restore the data' },
  { phase: 'configuring', title: 'Set up access' },
  { phase: 'ready', title: 'Ready' },
];

/** Steps that only some pods have; they are shown while they run. */
const RARE: readonly Phase[] = ['building', 'restoring'];

/** Returns the steps with their states; none for a pod that is not starting or running. */
export function startSteps(phase: PodDetailResponse['phase']): StartStep[] {
  const present = STEPS.findIndex((step) => step.phase === phase);
  if (present === -1) return [];
  const isReady = phase === 'ready';
  return STEPS.flatMap((step, at): StartStep[] => {
    if (RARE.includes(step.phase) && step.phase !== phase) return [];
    if (at === present) return [{ ...step, state: isReady ? 'done' : 'now' }];
    return [{ ...step, state: at < present ? 'done' : 'future' }];
  });
}

const BASES: Record<string, string> = {
  launches: 'from earlier starts on this node',
  pull_speed: 'from the speed at which the node downloads images',
  assumed: 'assumed, because nothing was measured yet',
  progress: 'from the progress of the download',
};

/** Describes what the estimated time is based on. */
export function basisOf(basis: string | null): string {
  return basis === null ? '' : (BASES[basis] ?? '');
}
