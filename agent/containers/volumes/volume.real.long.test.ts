/** Kills the agent while it backs up and restores a volume, with the real engine and the real restic. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type AgentHome, createAgentHome } from '../../../test/fakes/agents/agent-process.ts';
import { command } from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { fingerprintOf } from '../../../test/fakes/mixed-tree.ts';
import { PASSWORD } from '../../../test/fakes/scenes/backup-scene.ts';
import { copyBackup, copyRestore, folderOfCopy } from '../../../test/fakes/scenes/volume-copy.ts';
import { volumeCopyName } from './volume.service.ts';

// Long, because restic runs at the lowest priority.
vi.setConfig({ testTimeout: 180_000 });
const WITHIN_MS = 120_000;
const MIB = 2 ** 20;

const folder = mkdtempSync(join(tmpdir(), 'podwright-volumes-'));
const repository = { location: join(folder, 'repository'), password: PASSWORD };
let end = async (): Promise<unknown> => undefined;
afterAll(async () => {
  await end();
  rmSync(folder, { recursive: true });
});

it('completes a backup and a restore even if the agent is killed during each', async () => {
  const home: AgentHome = createAgentHome({});
  let agent = await home.start();
  const copies = [systemRandom.uuid(), systemRandom.uuid()] as const;
  end = async () => {
    await agent.kill();
    home.remove();
    for (const copy of copies) await command('docker', 'volume', 'rm', volumeCopyName(copy));
  };
  const { client } = agent;
  const put = { volume_id: systemRandom.uuid(), size_bytes: 2 ** 30 };
  for (const copy of copies) await client.putVolume(copy, put);
  const live = await folderOfCopy(copies[0]);
  for (const part of [1, 2, 3])
    writeFileSync(join(live, `part ${part}`), systemRandom.bytes(12 * MIB));
  const before = fingerprintOf(live);

  /** Kills the agent during the operation; the next agent completes it. */
  async function killed(id: string, stage: OperationView['stage']): Promise<OperationView> {
    const isThere = async () => {
      const view = await agent.client.getOperation(id);
      return view.stage === stage || view.finished_ms !== null;
    };
    await eventually(stage, isThere, WITHIN_MS);
    await agent.kill();
    agent = await home.start();
    const look = async () => {
      const view = await agent.client.getOperation(id);
      return view.finished_ms === null ? null : view;
    };
    return eventually('the end of an operation', look, WITHIN_MS);
  }

  const [save, restore] = [systemRandom.uuid(), systemRandom.uuid()];
  await client.postVolumeBackup(copies[0], copyBackup(save, repository));
  const saved = await killed(save, 'uploading');
  expect(saved).toMatchObject({ stage: 'done', quality: 'full' });
  await agent.client.postVolumeRestore(
    copies[1],
    copyRestore(restore, saved.snapshot_id, repository),
  );
  expect(await killed(restore, 'fetching')).toMatchObject({ stage: 'done', error: null });
  expect(fingerprintOf(await folderOfCopy(copies[1]))).toEqual(before);
  // A removal during a backup aborts it and leaves nothing.
  const last = systemRandom.uuid();
  await agent.client.postVolumeBackup(copies[0], copyBackup(last, repository));
  const isRemoved = async () => {
    const asked = await agent.client.deleteVolume(copies[0]).catch(() => null);
    return asked === null || asked.state === 'removed';
  };
  await eventually('the removal', isRemoved, WITHIN_MS);
  expect((await agent.client.listVolumes()).map(({ id }) => id)).toEqual([copies[1]]);
});
