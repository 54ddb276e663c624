import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createResticLocation } from './restic.ts';

const id = randomUUID();
const repository = { id, accountId: randomUUID() };

it.each([
  ['s3:https://s3.example/bucket/pods/', `s3:https://s3.example/bucket/pods/${id}`],
  ['sftp:backup@host:/srv/pods', `sftp:backup@host:/srv/pods/${id}`],
  ['rest:https://rest.example', `rest:https://rest.example/${id}`],
])(
  'creates each repository below %s, and leaves its removal to the operator',
  async (prefix, location) => {
    const environment = { AWS_ACCESS_KEY_ID: 'key' };
    const storage = createResticLocation({ prefix, environment });
    for (const rights of ['append', 'full'] as const) {
      expect(await storage.place(repository, rights)).toEqual({ location, environment });
    }
    expect(await storage.bytesOf(id)).toBeNull();
    await expect(storage.remove(id)).rejects.toThrow(/the operator must remove the backups/);
  },
);

it('removes only the given repository in a local folder, and succeeds if the repository is absent', async () => {
  const prefix = mkdtempSync(join(tmpdir(), 'podwright-location-'));
  const storage = createResticLocation({ prefix, environment: {} });
  for (const name of [id, 'other']) {
    mkdirSync(join(prefix, name, 'data'), { recursive: true });
    writeFileSync(join(prefix, name, 'config'), 'x');
  }
  expect((await storage.place(repository, 'full')).location).toBe(join(prefix, id));
  await storage.remove(id);
  await storage.remove(id);
  expect([existsSync(join(prefix, id)), existsSync(join(prefix, 'removed', id))]).toEqual([
    false,
    false,
  ]);
  await expect(storage.remove('other')).rejects.toThrow(/operator/);
  await expect(storage.remove('..')).rejects.toThrow(/operator/);
  expect(existsSync(join(prefix, 'other', 'config'))).toBe(true);
  rmSync(prefix, { recursive: true, force: true });
});
