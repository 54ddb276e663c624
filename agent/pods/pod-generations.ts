/**
 * Generations of a pod while it is changed in place. Pure.
 *
 * A newer generation is first staged: its image is fetched while the present container runs. Then it becomes the
 * present generation, and the previous one the fallback, whose container is stopped and kept. While it has a fallback,
 * the present generation is on trial (trial.plan.ts). If it works, the fallback is dropped. If it fails, the fallback
 * becomes the present generation again and the failed generation is recorded as refused. Each transition is one write
 * of the row.
 */

import type { PodChange, PodSpec, ReasonCode } from '#shared/api/agent/pod.ts';
import type { PodUsage } from '../containers/containers.ts';
import { REBOOTABLE_PHASES, RESTING_PHASES } from './pod.state.ts';
import {
  FallbackGeneration,
  type PodRow,
  RefusedGeneration,
  StagedGeneration,
} from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import { launchPatch, type PodContent, specOf } from './pod-row.ts';

export type Cause = { reason: ReasonCode; message: string };

export function stagedOf(row: Pick<PodRow, 'staged_json'>): StagedGeneration | null {
  return row.staged_json === null ? null : StagedGeneration.parse(JSON.parse(row.staged_json));
}

/** Generation to roll back to while the present one is on trial. */
export function fallbackOf(row: Pick<PodRow, 'fallback_json'>): FallbackGeneration | null {
  return row.fallback_json === null
    ? null
    : FallbackGeneration.parse(JSON.parse(row.fallback_json));
}

/** The newest generation, if it was refused. */
export function refusedOf(row: Pick<PodRow, 'refused_json'>): RefusedGeneration | null {
  return row.refused_json === null ? null : RefusedGeneration.parse(JSON.parse(row.refused_json));
}

/** The newest generation that was accepted, including staged and refused ones. */
export function newestOf(row: PodRow): { generation: number; spec_hash: string } {
  return stagedOf(row) ?? refusedOf(row) ?? row;
}

/** True if a newer generation must be staged because a container exists that it could put at risk. */
export function mustStage(row: PodRow): boolean {
  const isChanging = row.staged_json !== null || row.fallback_json !== null;
  return isChanging || (row.container_id !== null && REBOOTABLE_PHASES.includes(row.phase));
}

/** Stages a newer generation in place of one that is staged already. */
export function stagePatch(generation: number, content: PodContent) {
  const staged: StagedGeneration = {
    ...content,
    generation,
    image_id: null,
    image_digest: null,
    attempts: 0,
    reason: null,
    message: '',
  };
  return { staged_json: JSON.stringify(staged), refused_json: null };
}

/** Refuses the staged generation. Its predecessor still runs. */
export function refuseStagedPatch(staged: StagedGeneration, cause: Cause) {
  return { staged_json: null, refused_json: refusal(staged, cause) };
}

/**
 * Makes the staged generation the present one. A pod in a resting phase gets no fallback, because its generation does
 * not work.
 */
export function switchPatch(
  row: PodRow,
  staged: StagedGeneration,
  at: { nowMs: number; loginWorks: boolean },
) {
  const present: FallbackGeneration = {
    generation: row.generation,
    spec_json: row.spec_json,
    spec_hash: row.spec_hash,
    image_id: row.image_id,
    image_digest: row.image_digest,
    since_ms: at.nowMs,
    login_worked: at.loginWorks,
  };
  const before = fallbackOf(row);
  const next = before === null ? present : { ...before, since_ms: at.nowMs };
  const hasFallback = before !== null || !RESTING_PHASES.includes(row.phase);
  return {
    ...launchPatch(row, staged),
    staged_json: null,
    fallback_json: hasFallback ? JSON.stringify(next) : null,
  };
}

/** Makes the fallback the present generation again. A staged or refused generation is left unchanged. */
export function rollBackPatch(row: PodRow, fallback: FallbackGeneration, cause: Cause) {
  return {
    ...launchPatch(row, fallback),
    fallback_json: null,
    refused_json: row.refused_json ?? (row.staged_json === null ? refusal(row, cause) : null),
  };
}

/** Drops the fallback. A refused generation is left unchanged. */
export const COMMIT_PATCH = { fallback_json: null };

function refusal(
  { generation, spec_hash }: { generation: number; spec_hash: string },
  { reason, message }: Cause,
): string {
  const refused: RefusedGeneration = { generation, spec_hash, reason, message };
  return JSON.stringify(refused);
}

/** The present generation, the staged one and the fallback. */
export function partsOf(row: PodRow): (PodRow | StagedGeneration | FallbackGeneration)[] {
  return [row, stagedOf(row), fallbackOf(row)].filter((part) => part !== null);
}

/** Specs for which leases are held. */
export function specsInUse(row: PodRow): PodSpec[] {
  return partsOf(row).map(specOf);
}

export function changeOf(row: PodRow): PodChange | null {
  const staged = stagedOf(row);
  if (staged !== null) {
    const { generation, reason, message } = staged;
    return { generation, stage: 'preparing', reason, message };
  }
  if (row.fallback_json !== null) {
    const { generation, reason, message } = row;
    return {
      generation,
      stage: row.phase === 'running' ? 'settling' : 'replacing',
      reason,
      message,
    };
  }
  const refused = refusedOf(row);
  if (refused === null) return null;
  const { generation, reason, message } = refused;
  return { generation, stage: 'failed', reason, message };
}

/** Reports what pods use to the modules below: images, build logs and persistent volumes. */
export function podUsageOf(records: Pick<PodRecords, 'live'>): PodUsage {
  return {
    generations: () =>
      records
        .live()
        .flatMap((row) => partsOf(row).map((generation) => ({ podId: row.id, generation }))),
    podsWithVolume: (id) =>
      records
        .live()
        .filter((row) => specOf(row).volume?.id === id)
        .map((row) => row.id),
  };
}
