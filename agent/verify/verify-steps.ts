/**
 * Steps of a self-test, with the duration of each. After a failure the remaining steps are skipped. The first failure
 * determines the reason code.
 */
import type { VerifyResult } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { EngineError } from '../containers/engine/engine.ts';

export const VERIFY_REASONS = [
  'ENGINE_UNAVAILABLE',
  'GPU_RUNTIME_NVML_MISMATCH',
  'GPU_RUNTIME_DEVICE_FAULT',
  'CPU_QUOTA_EXCEEDS_HOST',
  'CONTAINER_START_FAILED',
] as const;
export type VerifyReason = (typeof VERIFY_REASONS)[number];

const MAX_MESSAGE_CHARS = 1_000;

/** `onFailure` is called with the error of each failed step. */
export function createSteps(clock: Clock, onFailure: (error: unknown) => void = () => undefined) {
  const steps: VerifyResult['steps'] = [];
  let reason: VerifyReason | null = null;

  async function attempt(name: string, work: () => Promise<void>): Promise<void> {
    const startedMs = clock.monotonicMs();
    const done = (status: 'ok' | 'failed', message: string) => {
      const ms = Math.round(clock.monotonicMs() - startedMs);
      steps.push({ name, status, ms, message: message.slice(0, MAX_MESSAGE_CHARS) });
    };
    try {
      await work();
      done('ok', '');
    } catch (error) {
      done('failed', messageOf(error));
      onFailure(error);
      // The first failure is the cause; later failures follow from the first.
      reason ??= reasonFor(name, error);
    }
  }

  function skip(name: string, message: string): void {
    steps.push({ name, status: 'skipped', ms: 0, message });
  }

  return {
    /** Runs a step, or skips it after a failure. */
    async run(name: string, work: () => Promise<void>): Promise<void> {
      if (reason === null) await attempt(name, work);
      else skip(name, 'an earlier step failed');
    },
    /** Runs a step even after a failure; `work` is null if there is nothing to do. */
    async finish(name: string, work: (() => Promise<void>) | null): Promise<void> {
      if (work === null) skip(name, 'nothing to do');
      else await attempt(name, work);
    },
    result: (): Omit<VerifyResult, 'simulated'> => ({
      ok: reason === null,
      reason_code: reason,
      steps,
    }),
  };
}

/** After a driver upgrade without reboot the versions of kernel module and library differ. */
const NVML_MISMATCH = /driver\/library version mismatch|nvml(?: error)?: .*mismatch/i;

/** The engine's messages for a CPU quota above the host's CPUs, such as `as there are only 2 CPUs available`. */
const CPU_REFUSED = /range of cpus|only \d+(?:\.\d+)? cpus? available/i;

function reasonFor(step: string, error: unknown): VerifyReason {
  if (step === 'engine_ping') return 'ENGINE_UNAVAILABLE';
  if (!(error instanceof EngineError)) return 'CONTAINER_START_FAILED';
  if (error.kind === 'unavailable') return 'ENGINE_UNAVAILABLE';
  if (error.kind === 'device') {
    return NVML_MISMATCH.test(error.message)
      ? 'GPU_RUNTIME_NVML_MISMATCH'
      : 'GPU_RUNTIME_DEVICE_FAULT';
  }
  if (error.kind === 'refused' && CPU_REFUSED.test(error.message)) return 'CPU_QUOTA_EXCEEDS_HOST';
  return 'CONTAINER_START_FAILED';
}
