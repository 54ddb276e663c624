import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createBackupScene } from '../../test/fakes/backup-scene.ts';

const scenes: ReturnType<typeof createBackupScene>[] = [];
function scene() {
  const made = createBackupScene();
  scenes.push(made);
  return made;
}
afterEach(() => {
  for (const made of scenes.splice(0)) made.close();
});

it('x', async () => {
  const s = scene();
  writeFileSync(join(s.volume, 'a'), 'hello');
  const service = s.open();
  const request = s.backupRequest();
  service.beginBackup(s.podId, request);
  const view = await s.ended(service, request.operation_id);
  console.log(view);
  const r = s.restoreRequest(view.snapshot_id ?? '');
  writeFileSync(join(s.volume, 'b'), 'later');
  service.beginRestore(s.podId, r);
  console.log(await s.ended(service, r.operation_id));
});
