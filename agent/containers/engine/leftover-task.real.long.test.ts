/** A task that the runtime keeps after the engine was killed during a start. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { startOwnEngine } from '../../../test/fakes/engine/own-engine.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { builtinTar } from '../images/builtin-image.ts';
import { createDockerodeEngine } from './dockerode-engine.ts';
import { endLeftoverTask } from './leftover-task.ts';

it('ends the task of one container only, and reports when there is none', async () => {
  const own = await startOwnEngine();
  try {
    const engine = createDockerodeEngine({ socketPath: own.socketPath, clock: systemClock });
    await engine.importImage(await builtinTar(readFileSync('/bin/busybox')), 'test:1', []);
    const [first, second] = [await run('first'), await run('second')];

    expect(await endLeftoverTask('0'.repeat(64))).toBe(false);
    expect(await endLeftoverTask(first.slice(0, 12))).toBe(false);
    expect(await endLeftoverTask(first)).toBe(true);
    await eventually('the end of the first', async () => {
      return (await engine.inspectContainer(first))?.status === 'exited';
    });
    expect(await engine.inspectContainer(second)).toMatchObject({ status: 'running' });
    await engine.startContainer(first);
    expect(await engine.inspectContainer(first)).toMatchObject({ status: 'running' });

    async function run(name: string): Promise<string> {
      const id = await engine.createContainer({
        name,
        image: 'test:1',
        labels: {},
        command: [],
        environment: {},
        entrypoint: ['/bin/busybox', 'sleep', '600'],
        limits: { cpuCores: 0.5, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 16 },
        network: null,
        ports: [],
        gpuUuids: [],
        stopGraceSeconds: 0,
      });
      await engine.startContainer(id);
      return id;
    }
  } finally {
    await own.remove();
  }
});
