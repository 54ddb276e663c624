import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createCappedFile, superviseChild } from './child-process.ts';

it('reports the last error of a child that ends, with the path of its log, once for equal ends', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-child-'));
  const output = createCappedFile(join(folder, 'agent-1.log'));
  const ends: string[] = [];
  const child = superviseChild({
    name: 'agent-1',
    arguments: ['-e', 'console.error("agent: the port is in use"); process.exit(6)'],
    environment: { PATH: process.env['PATH'] ?? '' },
    output,
    clock: systemClock,
    log: createLog({ name: 'test', level: 'silent' }),
    onReady: () => undefined,
    onEnd: (how) => ends.push(how),
  });
  try {
    await eventually('a second end', () => child.quickEnds() >= 2, 20_000);
    const end = `exit code 6: agent: the port is in use (log: ${output.path})`;
    expect([ends, child.lastEnd(), child.hasServed()]).toEqual([[end], end, false]);
    expect(readFileSync(output.path, 'utf8')).toContain('the port is in use');
  } finally {
    await child.stop();
    rmSync(folder, { recursive: true });
  }
});
