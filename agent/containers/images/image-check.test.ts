import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createImageChecks } from '../../verify/image-check.service.ts';
import { EngineError, type EngineErrorKind } from '../engine/engine.ts';

const EXECUTOR = '3f9f41a6-0001-4000-8000-000000000001';
const HERE = 'ubuntu:24.04';

function checks(fails: EngineErrorKind | null) {
  const engine = {
    async inspectImage(reference: string) {
      const image = { id: 'sha256:1', repoDigests: [], sizeBytes: 1, onBuild: [], user: '' };
      return reference === HERE ? image : null;
    },
    async resolveDigest() {
      if (fails !== null) throw new EngineError(fails, 'no way');
      return 'sha256:0';
    },
  };
  return createImageChecks({ clock: createManualClock(), executorId: EXECUTOR, engine });
}

const ask = (...images: string[]) => ({ executor_id: EXECUTOR, images });

it.each<[EngineErrorKind | null, string, string]>([
  [null, 'pullable', ''],
  ['image_not_found', 'missing', 'no way'],
  ['image_unreachable', 'missing', 'no way'],
  ['image_rate_limited', 'unknown', 'no way'],
  ['unavailable', 'unknown', 'no way'],
])(
  'with registry error %s, reports a remote image as %s and a local one as present',
  async (fails, state, problem) => {
    expect((await checks(fails).check(ask(HERE, 'ghcr.io/me/image'))).images).toEqual([
      { image: HERE, state: 'present', problem: '' },
      { image: 'ghcr.io/me/image', state, problem },
    ]);
  },
);

it('runs one check at a time, and rejects requests for another executor or for a registry at a private address', async () => {
  const images = checks(null);
  const strange = { ...ask(HERE), executor_id: 'x' };
  await expect(images.check(strange)).rejects.toThrow('another executor');
  await expect(images.check(ask(HERE, '10.0.0.1/a'))).rejects.toThrow('private address');
  const first = images.check(ask(HERE));
  await expect(images.check(ask(HERE))).rejects.toThrow('in progress');
  await first;
  await images.check(ask(HERE));
});
