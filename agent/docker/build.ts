/** Reads the progress stream of a build: its output, its failure, the image at its end. */
import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import { EngineError } from './engine.ts';
import { withIdleLimit } from './engine-stream.ts';

/** Compilers and package managers may be silent for a while, but not longer. */
export const BUILD_IDLE_MS = 600_000;
/** The engine paints what a step writes to stderr red. */
const RED = '\u001b[91m';
const RED_END = '\u001b[0m';
const NO_SPACE = /no space left on device|disk quota exceeded/i;

/** One record of the engine's stream; a failed build is a 200 whose last record holds the error. */
export const BuildRecord = z.object({
  stream: z.string().optional(),
  error: z.string().optional(),
  errorDetail: z.object({ message: z.string().default('') }).optional(),
  aux: z.object({ ID: z.string().optional() }).optional(),
});
export type BuildRecord = z.output<typeof BuildRecord>;

/** The id of the image; throws `build` for a failed or silent step, `image_no_space` for a full disk. */
export async function followBuild(
  records: AsyncGenerator<BuildRecord>,
  clock: Clock,
  onOutput: (text: string) => void,
): Promise<string> {
  let imageId: string | undefined;
  for await (const record of withIdleLimit(records, clock, BUILD_IDLE_MS)) {
    const failure = record.errorDetail?.message ?? record.error;
    if (failure !== undefined) {
      throw new EngineError(NO_SPACE.test(failure) ? 'image_no_space' : 'build', failure);
    }
    if (record.stream !== undefined && record.stream !== '') onOutput(plain(record.stream));
    // One for each stage; the last one counts.
    imageId = record.aux?.ID ?? imageId;
  }
  if (imageId === undefined) throw new EngineError('build', 'the build ended without an image');
  return imageId;
}

function plain(text: string): string {
  return text.startsWith(RED) && text.endsWith(RED_END)
    ? text.slice(RED.length, -RED_END.length)
    : text;
}
