/** Restore drills with the real restic that continue after a kill of their agent. */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { createAgentHome } from '../../test/fakes/agents/agent-process.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createBackupScene } from '../../test/fakes/scenes/backup-scene.ts';

const MIB = 1024 * 1024;
// restic runs at the lowest priority, so these tests take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

it('completes a drill after a kill of its agent, and leaves no temporary files', async () => {
  // restic needs half a second to open a repository that restic created, which leaves time to kill the agent.
  const scene = createBackupScene({ made: false });
  const service = scene.open();
  writeFileSync(join(scene.volume, 'random'), randomBytes(16 * MIB));
  const backup = scene.backupRequest();
  service.beginBackup(scene.podId, backup);
  const { snapshot_id } = await scene.ended(service, backup.operation_id);
  const request = scene.verifyRequest(snapshot_id ?? '');
  const home = createAgentHome({});
  const first = await home.start();
  const drills = join(first.home, 'scratch');
  await first.client.postDrill(scene.podId, request);
  const folder = join(drills, `.podwright-drill-${request.operation_id}`);
  await eventually('the scratch', () => existsSync(folder), 60_000);
  await first.kill();
  expect(existsSync(folder)).toBe(true);
  const second = await home.start();
  const ended = await eventually(
    'the end',
    async () => {
      const view = await second.client.getOperation(request.operation_id);
      return view.finished_ms === null ? null : view;
    },
    60_000,
  );
  expect(ended).toMatchObject({ stage: 'done', processed_bytes: 16 * MIB });
  expect(readdirSync(drills)).toEqual([]);
  await second.stop();
  home.remove();
  await service.stop();
  scene.close();
});
