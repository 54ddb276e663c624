/** The steps as they are, with the duration of those of a launch told to somebody. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { PodSteps } from './pod.steps.ts';

/** Steps of a launch that are timed. */
const LAUNCH_STAGES = ['pull', 'create', 'start'] as const;
export type LaunchStage = (typeof LAUNCH_STAGES)[number];

/** A step that fails is not told of: it says nothing of how long one takes. */
export function timedSteps(
  steps: PodSteps,
  clock: Clock,
  onStep: (stage: LaunchStage, tookMs: number) => void,
): PodSteps {
  return {
    async run(step, row, signal) {
      const beganMs = clock.monotonicMs();
      const outcome = await steps.run(step, row, signal);
      const stage = LAUNCH_STAGES.find((kind) => kind === step.kind);
      if (stage !== undefined) onStep(stage, clock.monotonicMs() - beganMs);
      return outcome;
    },
  };
}
