/** Input of a build for the engine: the rewritten Dockerfile, its labels and names, packed as a tar archive. */

import { createHash } from 'node:crypto';
import type { BaseImage, Dockerfile } from '#shared/api/agent/dockerfile.ts';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
import { EPOCH } from '#shared/runtime/clock.ts';
import { LABELS } from '../engine/engine.ts';

/** Packs a tar archive that contains only the Dockerfile. */
export async function buildContext(dockerfile: string): Promise<AsyncIterable<Uint8Array>> {
  // Loaded on demand: most agents never build.
  const { pack } = await import('tar-stream');
  const tar = pack();
  tar.entry({ name: 'Dockerfile', mode: 0o644, uid: 0, gid: 0, mtime: EPOCH }, dockerfile);
  tar.finalize();
  return chunksOf(tar);
}

async function* chunksOf(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) if (chunk instanceof Uint8Array) yield chunk;
}

const KEY_CHARS = 40;
const EXECUTOR_CHARS = 12;

/** Hash of the Dockerfile and the scope of the registry login, which together determine the image. */
export function buildKey(dockerfile: string, scope: string): string {
  const text = JSON.stringify([dockerfile, scope]);
  return createHash('sha256').update(text).digest('hex').slice(0, KEY_CHARS);
}

/**
 * Name of a built image. It contains the executor's id, because several agents may share an engine. The name's registry
 * is never queried.
 */
export function builtReference(executorId: string, key: string): string {
  return `${BUILTIN_HOST}build-${executorId.replaceAll('-', '').slice(0, EXECUTOR_CHARS)}:${key}`;
}

/** Labels of all objects of one build or, without a key, of all builds of this agent. */
export function buildLabels(executorId: string, key?: string): Record<string, string> {
  return {
    [LABELS.managed]: '1',
    [LABELS.executor]: executorId,
    [LABELS.kind]: 'build',
    ...(key === undefined ? {} : { [LABELS.build]: key }),
  };
}

/** Key of a base image in the map of image ids. */
export function imageName({ reference, digest }: BaseImage): string {
  return digest === undefined ? reference : `${reference}@${digest}`;
}

/** `sources` maps each line of the text to the line of the renter's Dockerfile; null for lines that the agent added. */
export type BuildText = { text: string; sources: readonly (number | null)[] };

/**
 * Rewrites a Dockerfile. Replaces base images by their ids, so that the engine queries no registry. Adds labels after
 * each FROM: every container and image of the build then has these labels, and pod labels of the base image are
 * cleared.
 */
export function buildText(
  { instructions }: Dockerfile,
  idOf: (image: BaseImage) => string,
  labels: Record<string, string>,
): BuildText {
  const clearedLabels = { [LABELS.pod]: '', [LABELS.generation]: '', [LABELS.specHash]: '' };
  const label = Object.entries({ ...clearedLabels, ...labels }).map(
    ([name, value]) => `${name}="${value}"`,
  );
  const labelLine = { text: `LABEL ${label.join(' ')}`, source: null };
  const lines = instructions.flatMap(({ name, line, rest, image, around }) => {
    const hasImage = image !== null && around !== null;
    const text = hasImage ? `${around.before}${idOf(image)}${around.after}` : `${name} ${rest}`;
    const renterLine = { text, source: line };
    return name === 'FROM' ? [renterLine, labelLine] : [renterLine];
  });
  return {
    text: lines.map(({ text }) => `${text}\n`).join(''),
    sources: lines.map(({ source }) => source),
  };
}
