/** Classifies the error of a failed step: the pod's reason, and whether a retry can help. Pure. */
import type { ReasonCode } from '#shared/api/agent/pod.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { EngineError, type EngineErrorKind } from '../containers/engine/engine.ts';
import { NameTaken } from '../containers/engine/labels.ts';
import { BuildFailure } from '../containers/images/build-output.ts';
import { ImageDigestMismatch } from '../containers/images/image.service.ts';
import { NetworkUnavailable } from '../containers/network/firewall.ts';
import { VolumeMissing } from '../containers/volumes/volume.service.ts';
import { PortPoolExhausted } from '../leases/port.service.ts';
import type { Step } from './pod.plan.ts';

export type StepKind = Step['kind'];

/**
 * - `engine_away`: the row is left unchanged; the reconcile job wakes the pod again
 * - `port_busy`: lease another port and create the container again
 * - `recheck`: the engine is busy with the object, or its state is not the one that the step assumed
 * - `name_taken`: an object of another owner has the name
 */
export type Failure =
  | { kind: 'engine_away' | 'port_busy' | 'recheck' | 'name_taken'; message: string }
  | { kind: 'retry'; reason: ReasonCode; message: string; maxAttempts: number }
  | { kind: 'permanent'; reason: ReasonCode; message: string };

/** Start attempts. A refused start may be transient, for example because of a busy cgroup or a full disk. */
const MAX_START_ATTEMPTS = 5;
/** Build attempts. An engine that failed during a build may be restarting. */
const MAX_BUILD_ATTEMPTS = 5;
/** Attempts after a GPU error: one retry, because the GPU runtime may be restarting. */
const MAX_DEVICE_ATTEMPTS = 2;

/** Errors that mean that the GPU runtime works but does not know the GPU. */
const UNKNOWN_DEVICE = /unknown device|no such device|device not found/i;

const PERMANENT_IMAGE: Partial<Record<EngineErrorKind, ReasonCode>> = {
  image_auth: 'ImageAuth',
  image_not_found: 'ImageNotFound',
  image_digest_mismatch: 'ImageDigestMismatch',
};
const TRANSIENT_IMAGE: Partial<Record<EngineErrorKind, ReasonCode>> = {
  image_rate_limited: 'ImageRateLimited',
  image_no_space: 'ImageNoSpace',
  image_stalled: 'ImageStalled',
  image_unreachable: 'ImageUnreachable',
};

/** The SSH gateway still listens on the port of the pod's own server. */
export class PortNotReleased extends Error {
  override name = 'PortNotReleased';
}

/** Classifies any value that a step threw. */
export function failureOf(step: StepKind, error: unknown): Failure {
  const message = messageOf(error);
  if (error instanceof ImageDigestMismatch) return permanent('ImageDigestMismatch', message);
  if (error instanceof BuildFailure) return permanent('BuildFailed', message);
  if (error instanceof PortPoolExhausted) return transient('PortPoolExhausted', message);
  if (error instanceof PortNotReleased) return transient('PortConflict', message);
  if (error instanceof NameTaken) return { kind: 'name_taken', message };
  if (error instanceof VolumeMissing) return permanent('StartFailed', message);
  if (error instanceof NetworkUnavailable) return transient('StartFailed', message);
  if (error instanceof EngineError) return engineFailure(step, error);
  return transient('Internal', message);
}

function engineFailure(step: StepKind, { kind, message }: EngineError): Failure {
  const imagePermanent = PERMANENT_IMAGE[kind];
  if (imagePermanent !== undefined) return permanent(imagePermanent, message);
  const imageTransient = TRANSIENT_IMAGE[kind];
  if (imageTransient !== undefined) return transient(imageTransient, message);
  switch (kind) {
    case 'unavailable':
      return { kind: 'engine_away', message };
    case 'port_busy':
      return { kind: 'port_busy', message };
    case 'conflict':
      return { kind: 'recheck', message };
    case 'not_found':
      return step === 'create'
        ? transient('ImageNotFound', message)
        : transient('StartFailed', message, MAX_START_ATTEMPTS);
    case 'device': {
      const reason = UNKNOWN_DEVICE.test(message) ? 'GpuUnavailable' : 'RuntimeMissing';
      return transient(reason, message, MAX_DEVICE_ATTEMPTS);
    }
    case 'build_interrupted':
      return transient('BuildFailed', message, MAX_BUILD_ATTEMPTS);
    case 'deadline':
      return transient('DeadlineExceeded', message);
    case 'task_left':
      // A task that the engine left behind. A restart of the engine removes it.
      return transient('StartFailed', message);
    default:
      return step === 'create'
        ? permanent('SpecRefused', message)
        : transient('StartFailed', message, MAX_START_ATTEMPTS);
  }
}

function permanent(reason: ReasonCode, message: string): Failure {
  return { kind: 'permanent', reason, message };
}

function transient(reason: ReasonCode, message: string, maxAttempts = Infinity): Failure {
  return { kind: 'retry', reason, message, maxAttempts };
}
