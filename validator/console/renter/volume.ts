/** Decisions about volumes. Pure. */
import type { Volume } from '../api/api.gen.ts';
import type { Tone } from '../parts/tone.ts';

export const VOLUME_TONES: Record<Volume['status'], Tone> = {
  available: 'idle',
  restoring: 'busy',
  attached: 'good',
  saving: 'busy',
};

/** Explains a status to the renter. */
export const VOLUME_TEXTS: Record<Volume['status'], string> = {
  available: 'The data is saved. A new pod can use the volume.',
  restoring: 'The node copies the data for its pod.',
  attached: 'A pod uses the volume. The node saves it every 6 hours, and when the pod ends.',
  saving: 'The pod has ended. The node saves the data, or removes its copy.',
};

export function isMoving({ status }: Volume): boolean {
  return status === 'restoring' || status === 'saving';
}

/** Returns why the volume cannot be deleted now; null if it can. */
export function whyNotDelete({ attached_pod_id: podId }: Volume): string | null {
  return podId === null ? null : 'Delete the pod that uses the volume first.';
}

/** True if data exists only on a node, which the owner may abandon if the node does not answer. */
export function mayRelease(volume: Volume): boolean {
  return volume.attached_pod_id === null && volume.executor_id !== null;
}
