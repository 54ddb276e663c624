/** What a failed step means for the pod: which reason, and whether trying again can help. Pure. */
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
 * - `engine_away`: nothing is known, nothing changes; the reconcile job wakes the pod again
 * - `port_busy`: exchange the port and create again
 * - `look_again`: the engine is busy with the object, or has another one than the step assumed
 * - `name_taken`: another owner's object has our name
 */
export type Failure =
  | { kind: 'engine_away' | 'port_busy' | 'look_again' | 'name_taken'; message: string }
  | { kind: 'retry'; reason: ReasonCode; message: string; maxAttempts: number }
  | { kind: 'permanent'; reason: ReasonCode; message: string };

/** A refused start may pass (a busy cgroup, a full disk): tried this often in a row, then given up. */
const MAX_START_ATTEMPTS = 5;
/** An engine that failed during a build may be restarting: as long as a start is tried, for nobody knows how far it came. */
const MAX_BUILD_ATTEMPTS = 5;
/** The GPU runtime may be restarting: one more try. */
const MAX_DEVICE_ATTEMPTS = 2;

/** The runtime works, and does not know the GPU. */
const UNKNOWN_DEVICE = /unknown device|no such device|device not found/i;

const PERMANENT_IMAGE: Partial<Record<EngineErrorKind, ReasonCode>> = {
  image_auth: 'ImageAuth',
  image_not_found: 'ImageNotFound',
  image_digest_mismatch: 'ImageDigestMismatch',
};
const PASSING_IMAGE: Partial<Record<EngineErrorKind, ReasonCode>> = {
  image_rate_limited: 'ImageRateLimited',
  image_no_space: 'ImageNoSpace',
  image_stalled: 'ImageStalled',
  image_unreachable: 'ImageUnreachable',
};

/** The gateway has not left the port that the pod's own server is to have. */
export class PortNotLeft extends Error {
  override name = 'PortNotLeft';
}

/** Reads anything that a step threw. */
export function failureOf(step: StepKind, error: unknown): Failure {
  const message = messageOf(error);
  if (error instanceof ImageDigestMismatch) return permanent('ImageDigestMismatch', message);
  if (error instanceof BuildFailure) return permanent('BuildFailed', message);
  if (error instanceof PortPoolExhausted) return passing('PortPoolExhausted', message);
  if (error instanceof PortNotLeft) return passing('PortConflict', message);
  if (error instanceof NameTaken) return { kind: 'name_taken', message };
  if (error instanceof VolumeMissing) return permanent('StartFailed', message);
  if (error instanceof NetworkUnavailable) return passing('StartFailed', message);
  if (error instanceof EngineError) return engineFailure(step, error);
  return passing('Internal', message);
}

function engineFailure(step: StepKind, { kind, message }: EngineError): Failure {
  const imagePermanent = PERMANENT_IMAGE[kind];
  if (imagePermanent !== undefined) return permanent(imagePermanent, message);
  const imagePassing = PASSING_IMAGE[kind];
  if (imagePassing !== undefined) return passing(imagePassing, message);
  switch (kind) {
    case 'unavailable':
      return { kind: 'engine_away', message };
    case 'port_busy':
      return { kind: 'port_busy', message };
    case 'conflict':
      return { kind: 'look_again', message };
    case 'not_found':
      return step === 'create'
        ? passing('ImageNotFound', message)
        : passing('StartFailed', message, MAX_START_ATTEMPTS);
    case 'device': {
      const reason = UNKNOWN_DEVICE.test(message) ? 'GpuUnavailable' : 'RuntimeMissing';
      return passing(reason, message, MAX_DEVICE_ATTEMPTS);
    }
    case 'build_interrupted':
      return passing('BuildFailed', message, MAX_BUILD_ATTEMPTS);
    case 'deadline':
      return passing('DeadlineExceeded', message);
    case 'task_left':
      // The engine's own remnant, which a restart of the engine takes away at the latest: no fault of the pod.
      return passing('StartFailed', message);
    default:
      return step === 'create'
        ? permanent('SpecRefused', message)
        : passing('StartFailed', message, MAX_START_ATTEMPTS);
  }
}

function permanent(reason: ReasonCode, message: string): Failure {
  return { kind: 'permanent', reason, message };
}

function passing(reason: ReasonCode, message: string, maxAttempts = Infinity): Failure {
  return { kind: 'retry', reason, message, maxAttempts };
}
