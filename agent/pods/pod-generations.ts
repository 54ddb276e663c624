/**
 * Changing a pod in place: what its row says in each part of a change (agent reference 4, edit). Pure.
 *
 * A newer generation is first staged: its image is fetched while the present container runs. Then it becomes
 * the present one, and the one before it the fallback, whose container is stopped and kept. Once the new one
 * has proved itself the fallback is dropped; if it fails, the fallback becomes the present one again and the
 * newer generation is remembered as refused. Each of these moves is one write of the row.
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
import { type PodContent, specOf } from './pod-row.ts';

export type Cause = { reason: ReasonCode; message: string };

/** The generation in preparation, if there is one. */
export function stagedOf(row: Pick<PodRow, 'staged_json'>): StagedGeneration | null {
  return row.staged_json === null ? null : StagedGeneration.parse(JSON.parse(row.staged_json));
}

/** What to return to, while the present generation is on trial. */
export function fallbackOf(row: Pick<PodRow, 'fallback_json'>): FallbackGeneration | null {
  return row.fallback_json === null
    ? null
    : FallbackGeneration.parse(JSON.parse(row.fallback_json));
}

/** The newest generation, if it was given up. */
export function refusedOf(row: Pick<PodRow, 'refused_json'>): RefusedGeneration | null {
  return row.refused_json === null ? null : RefusedGeneration.parse(JSON.parse(row.refused_json));
}

/** The newest generation that was accepted, whatever has become of it. */
export function newestOf(row: PodRow): { generation: number; spec_hash: string } {
  return stagedOf(row) ?? refusedOf(row) ?? row;
}

/** Whether a newer generation waits until it is ready: there is something that it should not put at risk. */
export function mustStage(row: PodRow): boolean {
  const underWay = row.staged_json !== null || row.fallback_json !== null;
  return underWay || (row.container_id !== null && REBOOTABLE_PHASES.includes(row.phase));
}

/** A newer generation to prepare; one that was being prepared is given up for it. */
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

/** The staged generation was given up before anything was stopped for it. */
export function refuseStagedPatch(staged: StagedGeneration, cause: Cause) {
  return { staged_json: null, refused_json: refusal(staged, cause) };
}

/** The staged generation becomes the present one. A pod that rests has nothing that is worth returning to. */
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
    ...presentPatch(row, staged),
    staged_json: null,
    fallback_json: hasFallback ? JSON.stringify(next) : null,
  };
}

/** The fallback becomes the present one again. What became of a still newer generation stays as it is. */
export function rollBackPatch(row: PodRow, fallback: FallbackGeneration, cause: Cause) {
  return {
    ...presentPatch(row, fallback),
    fallback_json: null,
    refused_json: row.refused_json ?? (row.staged_json === null ? refusal(row, cause) : null),
  };
}

/** The present generation has proved itself; a newer one that was given up stays so. */
export const COMMIT_PATCH = { fallback_json: null };

/** Another container is wanted, which answers a reboot that was still waiting. */
function presentPatch(
  row: PodRow,
  to: PodContent & Pick<PodRow, 'generation' | 'image_id' | 'image_digest'>,
) {
  return {
    generation: to.generation,
    spec_json: to.spec_json,
    spec_hash: to.spec_hash,
    image_id: to.image_id,
    image_digest: to.image_digest,
    phase: 'pending' as const,
    container_id: null,
    reason: null,
    message: '',
    attempts: 0,
    port_conflicts: 0,
    next_retry_ms: null,
    reboots_done: row.reboots_requested,
  };
}

function refusal(
  { generation, spec_hash }: { generation: number; spec_hash: string },
  { reason, message }: Cause,
): string {
  const refused: RefusedGeneration = { generation, spec_hash, reason, message };
  return JSON.stringify(refused);
}

/** The present generation, and those before and after it. */
export function partsOf(row: PodRow): (PodRow | StagedGeneration | FallbackGeneration)[] {
  return [row, stagedOf(row), fallbackOf(row)].filter((part) => part !== null);
}

/** Every spec that leases are held for. */
export function specsInUse(row: PodRow): PodSpec[] {
  return partsOf(row).map(specOf);
}

/** The change as the wire shows it. */
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
