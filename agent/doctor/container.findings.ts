/** Judges the self-test: its reason codes are those that the validator's check goes by. Pure. */

import { type Finding, fail, ok, unknown, warn } from '#shared/check/finding.ts';
import type { ContainerFacts } from './container.facts.ts';

const REMEDIES: Record<string, string> = {
  ENGINE_UNAVAILABLE: 'journalctl -u docker -n 50; systemctl restart docker',
  GPU_RUNTIME_DEVICE_FAULT:
    'apt install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; then try: docker run --rm --gpus all ubuntu nvidia-smi -L',
  GPU_RUNTIME_NVML_MISMATCH: 'reboot: the driver was upgraded while its old module stayed loaded',
  CPU_QUOTA_EXCEEDS_HOST: 'this host has less than one CPU to give',
  CONTAINER_START_FAILED: 'try by hand: docker run --rm busybox true; journalctl -u docker -n 50',
};

export function containerFindings(facts: ContainerFacts): Finding[] {
  return [probe(facts), figures(facts)];
}

/** A host where no container runs has other worries than their figures. */
function figures({ verified, usage }: ContainerFacts): Finding {
  const id = 'pod-figures';
  if ('value' in usage) {
    return ok(id, `what pods use is read from control groups of version ${usage.value}`);
  }
  if ('problem' in verified || !verified.value.ok)
    return unknown(id, `not tried: ${usage.problem}`);
  return warn(
    id,
    `what pods use is asked of the engine, one request per pod: ${usage.problem}`,
    'run the agent on the host itself, or its container with --pid=host --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro',
  );
}

function probe({ verified, gpuCount }: ContainerFacts): Finding {
  const id = 'container';
  if ('problem' in verified) return unknown(id, `no container was started: ${verified.problem}`);
  const { ok: isFine, steps, reason_code } = verified.value;
  if (isFine) {
    const tookMs = steps.reduce((sum, { ms }) => sum + ms, 0);
    const withGpus = gpuCount === 0 ? '' : ` with ${gpuCount} GPUs`;
    const what = `a container${withGpus} ran to its end in ${tookMs} ms`;
    return ok(id, `${what}, as the validator’s probe would`);
  }
  const failed = steps.find(({ status }) => status === 'failed');
  const what = `${reason_code} at step ${failed?.name}: ${failed?.message}`;
  return fail(id, what, REMEDIES[reason_code ?? ''] ?? 'journalctl -u docker -n 50');
}
