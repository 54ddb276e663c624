/** What a pod with real GPUs is told of them: the condition GpuHealthy (agent reference 9). Pure. */
import type { PodCondition } from '#shared/api/agent/pod.ts';
import { cordonOf, type GpuIdentity } from '../gpu/cordons.ts';
import type { Cordon, XidRow } from '../gpu/gpu-health.store.ts';
import { CORDONING_XIDS } from '../gpu/xid.ts';

/** When a container ran: only what happened then, and to its own cards, is its affair. */
export type RunWindow = { startedMs: number; finishedMs: number | null };

export type GpuConditionFacts = {
  gpus: readonly GpuIdentity[];
  cordons: readonly Cordon[];
  /** Of the pod's own cards, between start and finish. */
  xids: readonly XidRow[];
  /** Since when its GPUs are not seen inside it; null while they are, or where nobody could look. */
  lostSinceMs: number | null;
  /** Since when the pod has them. */
  sinceMs: number;
};

const REMEDY = 'reboot the pod; if that does not help, the host needs a reboot';

export function gpuCondition(facts: GpuConditionFacts): PodCondition {
  const bad = (reason: string, message: string, sinceMs: number): PodCondition => ({
    ...{ type: 'GpuHealthy', status: false, reason, message },
    last_transition_ms: sinceMs,
  });
  if (facts.lostSinceMs !== null) {
    const words = `A GPU of this pod is not seen inside it any more: ${REMEDY}`;
    return bad('GpuLostInContainer', words, facts.lostSinceMs);
  }
  // An Xid keeps later pods away for longer than it is this pod's affair: the window decides.
  const lasting = facts.cordons.filter(({ source }) => source !== 'xid');
  for (const gpu of facts.gpus) {
    const cordon = cordonOf(gpu, lasting);
    if (cordon === null) continue;
    const words = `GPU ${gpu.uuid}: ${cordon.reason}: ${cordon.message}`;
    return bad('GpuUnhealthy', words, cordon.since_ms);
  }
  const xid = facts.xids.find(({ code }) => CORDONING_XIDS.has(code));
  if (xid !== undefined) {
    const words = `The driver reported Xid ${xid.code} of the GPU at ${xid.pci}: ${REMEDY}`;
    return bad('GpuUnhealthy', words, xid.at_ms);
  }
  return {
    ...{ type: 'GpuHealthy', status: true, reason: 'Ok', message: '' },
    last_transition_ms: facts.sinceMs,
  };
}
