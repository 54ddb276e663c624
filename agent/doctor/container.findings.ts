/** Judges the self-test: its reason codes are those that the validator's check goes by. Pure. */

import { type Finding, fail, ok, unknown } from '#shared/doctor/finding.ts';
import type { ContainerFacts } from './container.facts.ts';

const REMEDIES: Record<string, string> = {
  ENGINE_UNAVAILABLE: 'journalctl -u docker -n 50; systemctl restart docker',
  GPU_RUNTIME_DEVICE_FAULT:
    'apt install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; then try: docker run --rm --gpus all ubuntu nvidia-smi -L',
  GPU_RUNTIME_NVML_MISMATCH: 'reboot: the driver was upgraded while its old module stayed loaded',
  CPU_QUOTA_EXCEEDS_HOST: 'this host has less than one CPU to give',
  CONTAINER_START_FAILED: 'try by hand: docker run --rm busybox true; journalctl -u docker -n 50',
};

export function containerFindings({ verified, gpuCount }: ContainerFacts): Finding[] {
  const id = 'container';
  if ('problem' in verified) return [unknown(id, `no container was started: ${verified.problem}`)];
  const { ok: isFine, steps, reason_code } = verified.value;
  if (isFine) {
    const tookMs = steps.reduce((sum, { ms }) => sum + ms, 0);
    const withGpus = gpuCount === 0 ? '' : ` with ${gpuCount} GPUs`;
    return [
      ok(
        id,
        `a container${withGpus} ran to its end in ${tookMs} ms, as the validator’s probe would`,
      ),
    ];
  }
  const failed = steps.find(({ status }) => status === 'failed');
  const what = `${reason_code} at step ${failed?.name}: ${failed?.message}`;
  return [fail(id, what, REMEDIES[reason_code ?? ''] ?? 'journalctl -u docker -n 50')];
}
