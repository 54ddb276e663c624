/** What is in place for a pod, derived from its row (agent reference 4). Pure. */
import type { PodView } from '#shared/api/agent/pod.ts';
import { changeOf } from './pod.change.ts';
import type { PodRow } from './pod.store.ts';

export type Condition = PodView['conditions'][number];

/** The conditions of `row`; one whose status is as in `before` keeps its time. */
export function deriveConditions(row: PodRow, before: readonly Condition[]): Condition[] {
  const alive = row.phase !== 'removed';
  const change = changeOf(row);
  const facts: [Condition['type'], boolean][] = [
    ['ImageReady', alive && row.image_id !== null],
    ['NetworkReady', alive && row.container_id !== null],
    ['PortsBound', row.phase === 'running'],
    ['GpuLeased', alive],
    ['Running', row.phase === 'running'],
    ['GenerationReady', row.phase === 'running' && change === null],
  ];
  return facts.map(([type, status]) => {
    const old = before.find((condition) => condition.type === type);
    const cause = type === 'GenerationReady' ? (change ?? row) : row;
    return {
      type,
      status,
      reason: status ? 'Ok' : (cause.reason ?? 'NotYet'),
      message: status ? '' : cause.message,
      last_transition_ms: old?.status === status ? old.last_transition_ms : row.updated_ms,
    };
  });
}
