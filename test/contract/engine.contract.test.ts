import { inject } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { ensureBuiltinImage } from '../../agent/containers/images/builtin-image.ts';
import { createFakeEngine } from '../fakes/engine/fake-engine.ts';
import { freePorts } from '../fakes/free-ports.ts';
import { describeEngine } from './engine.contract.ts';

const FAKE_IMAGE = 'podwright.local/fake:1';

describeEngine('in memory', async () => {
  const engine = createFakeEngine(systemClock);
  engine.addImage(FAKE_IMAGE, null);
  return { engine, image: FAKE_IMAGE, testRun: inject('testRun'), firstPort: 1 };
});

describeEngine('dockerode on a real engine', async () => {
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const image = await ensureBuiltinImage(engine, '/bin/busybox');
  const { first } = await freePorts(1);
  return { engine, image, testRun: inject('testRun'), firstPort: first };
});
