/** The storage on a full disk that reports more free space than it has. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { sha256, startBackupServer } from '../../../../test/fakes/external/backup-server.ts';
import { fill, mountSmallDisk } from '../../../../test/fakes/faults/small-disk.ts';
import { makeRepository } from './repository-folder.ts';

const MIB = 1024 * 1024;

it('refuses files and folders that do not fit on the disk, and stores no part of them', async () => {
  const { folder, close } = mountSmallDisk(4);
  const spaceOf = async () => ({ freeBytes: 1024 ** 4, totalBytes: 1024 ** 4 });
  const server = await startBackupServer({ folder, spaceOf });
  const ids = { id: systemRandom.uuid(), accountId: systemRandom.uuid() };
  const place = await server.storage.place(ids, 'append');
  await makeRepository(join(folder, ids.id), ids.accountId);
  const body = randomBytes(MIB);
  const send = () => server.send('POST', `data/${sha256(body)}`, { place, body });
  for (const leftKib of [512, 0]) {
    const filler = fill(folder, leftKib / 1_024);
    const { status, reason } = await send();
    expect([status, reason]).toEqual([507, 'The disk for backups is full']);
    expect(readdirSync(join(folder, ids.id, 'arriving'))).toEqual([]);
    expect(readdirSync(join(folder, ids.id, 'data'))).toEqual([]);
    filler.empty();
  }
  expect((await send()).status).toBe(200);
  await server.close();
  close();
});
