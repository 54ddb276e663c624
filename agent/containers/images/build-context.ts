/** What a build is given of the host's files: one text. */
import { EPOCH } from '#shared/runtime/clock.ts';

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
