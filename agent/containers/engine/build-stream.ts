/** Reads the progress stream of a build: its output, its error, the id of its image. */
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError, type EngineErrorKind } from './engine.ts';
import { statusOf, toEngineError } from './engine-errors.ts';
import { withIdleLimit } from './engine-stream.ts';

/** Time without output after which a build step counts as stalled. */
export const BUILD_IDLE_MS = 600_000;
/** Escape sequence with which the engine colours the stderr output of a step red. */
const RED = '\u001b[91m';
const RED_END = '\u001b[0m';
const NO_SPACE = /no space left on device|disk quota exceeded/i;
/** Errors of an engine or a containerd that was stopped during the build. */
const ENGINE_FAILURE =
  /context canceled|code = Unavailable|connection reset by peer|transport is closing|client connection is closing|containerd\.sock/;
const FIRST_SERVER_ERROR = 500;

/** One record of the engine's stream. A failed build has status 200 and an error in its last record. */
export const BuildRecord = z.object({
  stream: z.string().optional(),
  error: z.string().optional(),
  // `code` is the exit status of the step's command.
  errorDetail: z.object({ code: z.int().optional(), message: z.string().default('') }).optional(),
  aux: z.object({ ID: z.string().optional() }).optional(),
});
export type BuildRecord = z.output<typeof BuildRecord>;

/**
 * Returns the image's id. Throws `build` if a step failed, `image_stalled` if the stream was silent for too long,
 * `image_no_space` if the disk is full, `build_interrupted` if the engine failed.
 */
export async function followBuild(
  records: AsyncGenerator<BuildRecord>,
  clock: Clock,
  onOutput: (text: string) => void,
): Promise<string> {
  let imageId: string | undefined;
  for await (const record of withIdleLimit(records, clock, BUILD_IDLE_MS)) {
    const failure = record.errorDetail?.message ?? record.error;
    if (failure !== undefined) {
      throw new EngineError(kindOf(failure, record.errorDetail?.code), failure);
    }
    if (record.stream !== undefined && record.stream !== '') onOutput(plain(record.stream));
    // The stream has an image id per stage; the last id is that of the image.
    imageId = record.aux?.ID ?? imageId;
  }
  if (imageId === undefined) {
    throw new EngineError('build_interrupted', 'the build ended without an image');
  }
  return imageId;
}

/**
 * Converts the error of a build that was refused before its first step: the Dockerfile is invalid, unless the engine
 * reports a server error.
 */
export function buildFailure(error: unknown): EngineError {
  const known = toEngineError(error);
  const { kind, message } = known;
  if (kind === 'image_stalled') {
    return new EngineError('build', `a step was silent for too long (${message})`);
  }
  if (kind !== 'refused' && kind !== 'not_found') return known;
  const isServerError = (statusOf(error) ?? 0) >= FIRST_SERVER_ERROR;
  return new EngineError(isServerError ? 'build_interrupted' : 'build', message, { cause: error });
}

/**
 * Returns the kind of a failure. If there is an exit code, the step's command ran, so the Dockerfile caused the
 * failure.
 */
function kindOf(failure: string, exitCode: number | undefined): EngineErrorKind {
  if (NO_SPACE.test(failure)) return 'image_no_space';
  return exitCode === undefined && ENGINE_FAILURE.test(failure) ? 'build_interrupted' : 'build';
}

function plain(text: string): string {
  return text.startsWith(RED) && text.endsWith(RED_END)
    ? text.slice(RED.length, -RED_END.length)
    : text;
}
