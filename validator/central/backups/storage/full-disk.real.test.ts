/** The storage on a read-only disk, and on a full disk that reports more free space than it has. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { sha256, startBackupServer } from '../../../../test/fakes/external/backup-server.ts';
import { fill, mountSmallDisk } from '../../../../test/fakes/faults/small-disk.ts';
import { makeRepository } from './repository-folder.ts';

const MIB = 1024 * 1024;
/** Reports free space whatever the disk has. */
const spaceOf = async () => ({ freeBytes: 1024 ** 4, totalBytes: 1024 ** 4 });

it('refuses files and folders that do not fit on the disk, and stores no part of them', async () => {
  const { folder, close } = mountSmallDisk(4);
  onTestFinished(close);
  const server = await startBackupServer({ folder, spaceOf });
  onTestFinished(server.close);
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
});

it('refuses new repositories and files on a read-only disk, and serves the stored ones', async () => {
  const { folder, close } = mountSmallDisk(4);
  onTestFinished(close);
  const server = await startBackupServer({ folder, spaceOf });
  onTestFinished(server.close);
  const ids = { id: systemRandom.uuid(), accountId: systemRandom.uuid() };
  const place = await server.storage.place(ids, 'full');
  await makeRepository(join(folder, ids.id), ids.accountId);
  const [stored, late] = [randomBytes(99), randomBytes(99)];
  const send = (method: string, body: Buffer) =>
    server.send(method, `data/${sha256(body)}`, { place, ...(method === 'POST' ? { body } : {}) });
  expect((await send('POST', stored)).status).toBe(200);
  execFileSync('mount', ['-o', 'remount,ro', folder]);
  const other = await server.storage.place({ ...ids, id: systemRandom.uuid() }, 'append');
  for (const refused of [
    await send('POST', late),
    await send('DELETE', stored),
    await server.send('POST', '?create=true', { place: other }),
  ]) {
    expect([refused.status, refused.reason]).toEqual([503, 'The storage is read-only']);
    expect(refused.headers['retry-after']).toBe('60');
  }
  expect((await send('GET', stored)).body).toEqual(stored);
});
