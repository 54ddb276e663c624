/** What a build is given of the host's files: one text. */

import { createHash } from 'node:crypto';
import type { BaseImage, Dockerfile } from '#shared/api/agent/dockerfile.ts';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
import { EPOCH } from '#shared/runtime/clock.ts';
import { LABELS } from '../engine/engine.ts';

/** A tar archive with nothing but the Dockerfile. */
export async function buildContext(dockerfile: string): Promise<AsyncIterable<Uint8Array>> {
  // Needed by builds alone, so not kept in memory by every agent.
  const { pack } = await import('tar-stream');
  const tar = pack();
  tar.entry({ name: 'Dockerfile', mode: 0o644, uid: 0, gid: 0, mtime: EPOCH }, dockerfile);
  tar.finalize();
  return chunksOf(tar);
}

async function* chunksOf(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) if (chunk instanceof Uint8Array) yield chunk;
}

// MERGED agent/containers/images/build-context.ts: The Dockerfile that the engine gets: the renter's, with images that are here already and our labels. Pure.
const KEY_CHARS = 40;
const EXECUTOR_CHARS = 12;

/** Equal for what gives the same image to the same reader: the text, and whose login it is built with. */
export function buildKey(dockerfile: string, scope: string): string {
  const text = JSON.stringify([dockerfile, scope]);
  return createHash('sha256').update(text).digest('hex').slice(0, KEY_CHARS);
}

/** Two agents on one engine keep apart by it. No registry is ever asked for names under this host. */
export function builtReference(executorId: string, key: string): string {
  return `${BUILTIN_HOST}build-${executorId.replaceAll('-', '').slice(0, EXECUTOR_CHARS)}:${key}`;
}

/** What finds everything that a build (or, without key, any build of this agent) has made. */
export function buildLabels(executorId: string, key?: string): Record<string, string> {
  return {
    [LABELS.managed]: '1',
    [LABELS.executor]: executorId,
    [LABELS.kind]: 'build',
    ...(key === undefined ? {} : { [LABELS.build]: key }),
  };
}

/** How `idOf` is asked for the images of `dockerfile`. */
export function imageName({ reference, digest }: BaseImage): string {
  return digest === undefined ? reference : `${reference}@${digest}`;
}

/** `sources`: for each line of the text the line of the renter's that it stands for; null: it is ours. */
export type BuildText = { text: string; sources: readonly (number | null)[] };

/**
 * Images by their ids, so that the engine asks no registry. The labels come right after each FROM: every
 * container and image of the build carries them, and none that its base had in our name.
 */
export function buildText(
  { instructions }: Dockerfile,
  idOf: (image: BaseImage) => string,
  labels: Record<string, string>,
): BuildText {
  const nobodys = { [LABELS.pod]: '', [LABELS.generation]: '', [LABELS.specHash]: '' };
  const label = Object.entries({ ...nobodys, ...labels }).map(
    ([name, value]) => `${name}="${value}"`,
  );
  const ours = { text: `LABEL ${label.join(' ')}`, source: null };
  const lines = instructions.flatMap(({ name, line, rest, image, around }) => {
    const known = image !== null && around !== null;
    const text = known ? `${around.before}${idOf(image)}${around.after}` : `${name} ${rest}`;
    const theirs = { text, source: line };
    return name === 'FROM' ? [theirs, ours] : [theirs];
  });
  return {
    text: lines.map(({ text }) => `${text}\n`).join(''),
    sources: lines.map(({ source }) => source),
  };
}
