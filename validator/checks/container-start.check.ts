/** Docker on the host starts a container with exactly the offered GPUs and cores. */
import { failed, type Judge, passed, unknown } from './check.ts';

export const judgeContainerStart: Judge = ({ probe }) => {
  if (probe === null) return unknown('not run');
  if (probe.ok) return passed(`${probe.steps.reduce((sum, step) => sum + step.ms, 0)} ms`);
  const step = probe.steps.find((candidate) => candidate.status === 'failed');
  const measured = step === undefined ? 'failed' : `${step.name}: ${step.message}`;
  const reasonCode = probe.reason_code ?? 'CONTAINER_START_FAILED';
  return failed(reasonCode, measured, 'A probe container could not be run');
};
