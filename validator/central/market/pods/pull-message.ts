/** How far a pod's image has come, in words for its renter. Pure. */
import type { PullProgress } from '#shared/api/agent/images.ts';

const MB = 1e6;
const GB = 1e9;

/** In whole percent, so that not every look at the node is news. */
export function pullMessage(pull: PullProgress): string {
  const { bytes_done: done, bytes_total: total } = pull;
  if (total === 0) return 'Fetching the image';
  const layers = `${pull.layers_done} of ${pull.layers_total} layers are there`;
  if (done >= total) return `Unpacking the image: ${layers}`;
  const percent = Math.floor((done / total) * 100);
  return `Fetching the image: ${percent} % of ${sizeOf(total)}, ${layers}`;
}

function sizeOf(bytes: number): string {
  return bytes < GB ? `${Math.ceil(bytes / MB)} MB` : `${(bytes / GB).toFixed(1)} GB`;
}
