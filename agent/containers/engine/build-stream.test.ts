import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { failureOf } from '../../pods/step-failure.ts';
import { BuildRecord, buildFailure, followBuild } from './build-stream.ts';
import type { EngineErrorKind } from './engine.ts';

const refusal = (statusCode: number, message: string) =>
  Object.assign(new Error(message), { statusCode, json: { message } });
const broken = (code: string) => Object.assign(new Error(code), { code });

/** Runs a build whose stream has these records or fails, and returns its result. */
async function outcomeOf(...records: (object | Error)[]): Promise<unknown> {
  async function* stream() {
    for (const record of records) {
      if (record instanceof Error) throw record;
      yield BuildRecord.parse(record);
    }
  }
  return followBuild(stream(), createManualClock(), () => undefined).catch(buildFailure);
}

const failed = (message: string, code?: number) => ({ errorDetail: { message, code } });

it.each<[string, (object | Error)[], EngineErrorKind]>([
  ['a command that fails', [failed('returned a non-zero code: 3', 3)], 'build'],
  [
    'a failed command whose output looks like an engine error',
    [failed('context canceled', 1)],
    'build',
  ],
  ['a step that the engine refuses', [failed('Invalid signal: NONE')], 'build'],
  ['a full disk', [failed('write /x: no space left on device')], 'image_no_space'],
  ['an engine that stops', [failed('context canceled')], 'build_interrupted'],
  [
    'an unavailable containerd',
    [failed('rpc error: code = Unavailable desc = x')],
    'build_interrupted',
  ],
  ['an end without an image', [{ stream: 'Step 1/2' }], 'build_interrupted'],
  ['a connection that breaks', [{ stream: 'Step 1/2' }, broken('ECONNRESET')], 'unavailable'],
  ['a refused Dockerfile', [refusal(400, 'dockerfile parse error')], 'build'],
  ['an engine that fails at once', [refusal(500, 'database is locked')], 'build_interrupted'],
])('classifies %s', async (_, records, kind) => {
  expect(await outcomeOf(...records)).toMatchObject({ kind });
});

it('retries a build that the engine failed, but not a build that the Dockerfile failed', async () => {
  const interrupted = failureOf('pull', await outcomeOf(refusal(503, 'shutting down')));
  expect(interrupted).toMatchObject({ kind: 'retry', reason: 'BuildFailed', maxAttempts: 5 });
  const away = failureOf('pull', await outcomeOf(broken('ECONNREFUSED')));
  expect(away.kind).toBe('engine_away');
});

it('returns the image of a successful build', async () => {
  expect(await outcomeOf({ aux: { ID: 'sha256:one' } }, { aux: { ID: 'sha256:two' } })).toBe(
    'sha256:two',
  );
});
