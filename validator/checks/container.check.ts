/** Checks that use the probe container, which Docker starts with exactly the offered GPUs and cores. */
import { ok, unknown } from '#shared/check/check.ts';
import { defineCheck, fail, moot } from './check.ts';

const QUOTA = 'CPU_QUOTA_EXCEEDS_HOST';
const NESTED_STEP = 'docker_in_docker';

export const cpuQuota = defineCheck({
  id: 'cpu_quota',
  detects: 'an offer of more cores than the engine grants',
  required: 'a container with all offered cores can be created',
  category: 'policy',
  isTrial: true,
  judge({ probe, inventory: { cpu } }) {
    if (probe === null) return unknown('not run');
    if (probe.ok) return ok(`${cpu.cores} cores`);
    if (probe.reason_code !== QUOTA) return unknown('the container failed for another reason');
    return fail(QUOTA, `${cpu.cores} cores`, 'The engine grants fewer cores than offered');
  },
  remedies: { CPU_QUOTA_EXCEEDS_HOST: 'Correct the number of CPU cores that the host offers.' },
});

/** The probe performs a nested engine's operations in a container. */
export const dindRuntime = defineCheck({
  id: 'dind_runtime',
  detects: 'nested containers that are offered but do not work',
  required: 'image layers, mounts and processes work inside a container of the offered runtime',
  category: 'runtime',
  mode: 'shadow',
  isTrial: true,
  judge({ probe, inventory: { docker } }) {
    if (!docker.sysbox_runtime) return moot('not offered');
    const step = probe?.steps.find(({ name }) => name === NESTED_STEP);
    if (step === undefined || step.status === 'skipped') return unknown('not tried');
    if (step.status === 'ok') return ok(`${step.ms} ms`);
    return fail('DIND_UNAVAILABLE', step.message, 'Nested containers do not work');
  },
  remedies: {
    DIND_UNAVAILABLE: 'Reinstall sysbox, or remove its runtime from /etc/docker/daemon.json.',
  },
});

export const containerStart = defineCheck({
  id: 'container_start',
  detects: 'an engine that cannot start a container with the offered GPUs',
  required: 'a probe container starts, runs and is removed',
  category: 'runtime',
  isTrial: true,
  judge({ probe }) {
    if (probe === null) return unknown('not run');
    if (probe.ok) return ok(`${probe.steps.reduce((sum, step) => sum + step.ms, 0)} ms`);
    if (probe.reason_code === QUOTA) return unknown('judged by cpu_quota');
    const step = probe.steps.find((candidate) => candidate.status === 'failed');
    const measured = step === undefined ? 'failed' : `${step.name}: ${step.message}`;
    const reasonCode = probe.reason_code ?? 'CONTAINER_START_FAILED';
    return fail(reasonCode, measured, 'A probe container could not be run');
  },
  remedies: {
    CONTAINER_START_FAILED: 'Run `docker run --rm hello-world` on the host and correct the error.',
    GPU_RUNTIME_NVML_MISMATCH:
      'Reboot: the driver was upgraded while its old module stayed loaded.',
    GPU_RUNTIME_DEVICE_FAULT:
      'Install or repair the NVIDIA container toolkit, then restart Docker.',
  },
});
