/** Docker on the host starts a container with exactly the offered GPUs and cores. */
import { failed, type Judge, moot, passed, unknown } from './check.ts';

const QUOTA = 'CPU_QUOTA_EXCEEDS_HOST';

/** The probe asks for as many cores as are offered. */
export const judgeCpuQuota: Judge = ({ probe, inventory: { cpu } }) => {
  if (probe === null) return unknown('not run');
  if (probe.ok) return passed(`${cpu.cores} cores`);
  if (probe.reason_code !== QUOTA) return unknown('the container failed otherwise');
  return failed(QUOTA, `${cpu.cores} cores`, 'The engine does not give as many cores as offered');
};

const NESTED_STEP = 'docker_in_docker';

/** The probe did in a container what an engine inside would do. */
export const judgeNested: Judge = ({ probe, inventory: { docker } }) => {
  if (!docker.sysbox_runtime) return moot('not offered');
  const step = probe?.steps.find(({ name }) => name === NESTED_STEP);
  if (step === undefined || step.status === 'skipped') return unknown('not tried');
  if (step.status === 'ok') return passed(`${step.ms} ms`);
  return failed('DIND_UNAVAILABLE', step.message, 'Containers in containers do not work');
};

export const judgeContainerStart: Judge = ({ probe }) => {
  if (probe === null) return unknown('not run');
  if (probe.ok) return passed(`${probe.steps.reduce((sum, step) => sum + step.ms, 0)} ms`);
  if (probe.reason_code === QUOTA) return unknown('another check tells of its cores');
  const step = probe.steps.find((candidate) => candidate.status === 'failed');
  const measured = step === undefined ? 'failed' : `${step.name}: ${step.message}`;
  const reasonCode = probe.reason_code ?? 'CONTAINER_START_FAILED';
  return failed(reasonCode, measured, 'A probe container could not be run');
};
