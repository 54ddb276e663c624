/** Meaning of the states of a node and of its checks for its provider. Pure. */
import type { PortalNode, Verification } from '../api/portal.gen.ts';
import type { Tone } from '../parts/tone.ts';

type NodeStatus = PortalNode['status'];
export type Check = Verification['checks'][number];

const STATES: Record<NodeStatus, { tone: Tone; meaning: string }> = {
  queued: { tone: 'busy', meaning: 'The node waits for its first check by a validator.' },
  available: { tone: 'good', meaning: 'The node has passed its checks and renters can rent it.' },
  paused: { tone: 'idle', meaning: 'The node accepts no new rentals. Its pods keep running.' },
  failed: { tone: 'bad', meaning: 'The node fails at least one check and cannot be rented.' },
  removed: { tone: 'idle', meaning: 'The node has left the marketplace.' },
};

export function nodeTone(status: NodeStatus): Tone {
  return STATES[status].tone;
}

export function nodeMeaning(status: NodeStatus): string {
  return STATES[status].meaning;
}

/** Returns for example `3 of 8 rented`. */
export function occupancyOf(
  node: Pick<PortalNode, 'gpu_count' | 'available_gpu_count' | 'rented'>,
): string {
  // A node without a verdict has no free GPUs, although none is rented.
  if (!node.rented) return `0 of ${node.gpu_count} rented`;
  return `${node.gpu_count - node.available_gpu_count} of ${node.gpu_count} rented`;
}

/** Order of the checks of a page: failures that prevent rentals, then other failures, then passed checks. */
export function sortChecks(checks: readonly Check[]): Check[] {
  const rank = ({ passed, gating }: Check) => (passed ? 2 : gating ? 0 : 1);
  return checks.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

export function checkTone({ passed, gating }: Check): Tone {
  if (passed) return 'good';
  return gating ? 'bad' : 'warn';
}

/**
 * Effect of a check on rentals and on the weight, from which the rewards result. `isBlocking`: the check is among the
 * reasons that prevent rentals.
 */
export function checkEffect({ passed, gating }: Check, isBlocking: boolean): string {
  if (!gating) return 'None: the result is only recorded.';
  if (passed) return 'None while it passes.';
  return isBlocking
    ? 'No new rentals and no weight until the check passes.'
    : 'Less or no weight until the check passes. Rentals continue.';
}
