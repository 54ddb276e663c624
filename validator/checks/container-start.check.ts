/** Docker on the host starts a container with exactly the offered GPUs and cores. */
import type { Check } from './check.ts';

const REMEDIES: Record<string, string> = {
  GPU_RUNTIME_DEVICE_FAULT: 'Install or repair the NVIDIA container toolkit, then restart Docker.',
  CPU_QUOTA_EXCEEDS_HOST: 'Correct the number of CPU cores that the host offers.',
};

export const containerStartCheck: Check = {
  id: 'container_start',
  required: 'a probe container starts, runs and is removed',
  judge({ probe }) {
    if (probe === null) return { status: 'unknown', measured: 'not run' };
    if (probe.ok) {
      const ms = probe.steps.reduce((sum, step) => sum + step.ms, 0);
      return { status: 'passed', measured: `${ms} ms` };
    }
    const step = probe.steps.find((candidate) => candidate.status === 'failed');
    const reasonCode = probe.reason_code ?? 'CONTAINER_START_FAILED';
    return {
      status: 'failed',
      reasonCode,
      measured: step === undefined ? 'failed' : `${step.name}: ${step.message}`.slice(0, 1000),
      message: 'A probe container could not be run',
      remediation:
        REMEDIES[reasonCode] ?? 'Run `docker run --rm hello-world` on the host and mend it.',
    };
  },
};
