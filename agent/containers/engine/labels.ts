/** Label filters: which objects of the engine belong to this executor, and to which of its pods. */
import { LABELS } from './engine.ts';

/** Labels of every object that this executor's agent creates. Other executors may share the engine. */
export function executorLabels(executorId: string): Record<string, string> {
  return { [LABELS.managed]: '1', [LABELS.executor]: executorId };
}

/**
 * Labels of the containers and data volumes of one pod, or of all pods. Networks do not have the label of the
 * kind.
 */
export function podLabels(executorId: string, podId?: string): Record<string, string> {
  return {
    ...executorLabels(executorId),
    [LABELS.kind]: 'pod',
    ...(podId === undefined ? {} : { [LABELS.pod]: podId }),
  };
}

/** Labels of every object of one pod, its network included. */
export function podObjectLabels(executorId: string, podId: string): Record<string, string> {
  return { ...executorLabels(executorId), [LABELS.pod]: podId };
}

/** Another owner's object has the name that the agent needs. The agent does not change that object. */
export class NameTaken extends Error {
  override name = 'NameTaken';
}
