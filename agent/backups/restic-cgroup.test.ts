import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createResticCgroup } from './restic-cgroup.ts';
import { resticCommand } from './restic-command.ts';

const log = createLog({ name: 'test-cgroup', level: 'silent' });
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podwright-cgroup-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Simulates the kernel: creates the group and the setting files that the kernel would create in it. */
function cgroupAt(parent: string, files: readonly string[]): void {
  mkdirSync(join(root, parent, 'ours'), { recursive: true });
  for (const file of files) writeFileSync(join(root, parent, 'ours', file), '');
}

const groupAt = (ownGroups: string) => {
  writeFileSync(join(root, 'own'), ownGroups);
  return createResticCgroup({ name: 'ours', log, root, ownGroups: join(root, 'own') });
};
const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');

it('creates a group beside the agent’s with cgroups version 2, and applies the settings that the kernel offers', async () => {
  writeFileSync(join(root, 'cgroup.controllers'), 'cpu memory');
  cgroupAt('system.slice', ['cpu.weight', 'memory.max']);
  const group = groupAt('0::/system.slice/agent.service\n');
  const seat = await group.enter();
  expect(seat).toMatchObject({
    yieldsCpu: true,
    procsFiles: [join(root, 'system.slice/ours/cgroup.procs')],
  });
  expect(read('system.slice/ours/cpu.weight')).toBe('20');
  expect(read('system.slice/ours/memory.max')).toBe(String(2 * 1024 ** 3));
});

it('creates a group below the agent’s in each hierarchy of cgroups version 1', async () => {
  cgroupAt('cpu/agent', ['cpu.shares']);
  cgroupAt('memory', ['memory.limit_in_bytes']);
  const group = groupAt('4:memory:/\n1:cpu,cpuacct:/agent\n0::/\n');
  const { procsFiles } = await group.enter();
  expect(procsFiles).toEqual([
    join(root, 'memory/ours/cgroup.procs'),
    join(root, 'cpu/agent/ours/cgroup.procs'),
  ]);
  expect(read('cpu/agent/ours/cpu.shares')).toBe('200');
});

it('runs restic without a group if none can be created', async () => {
  const seat = await groupAt('0::/\n').enter();
  expect(seat).toMatchObject({ procsFiles: [], yieldsCpu: false });
});

it('has restic as its member on this kernel while restic runs', async () => {
  const name = `podwright-test-${systemRandom.uuid()}`;
  const group = createResticCgroup({ name, log });
  const { procsFiles } = await group.enter();
  await group.enter();
  const [file, ...args] = resticCommand('cat', ['/proc/self/cgroup'], null, procsFiles);
  const seen = execFileSync(file, args, { encoding: 'utf8' });
  expect(seen.split(name).length - 1, seen).toBe(procsFiles.length);
  expect(procsFiles.length).toBeGreaterThan(0);
  await group.leave();
  expect(procsFiles.map((door) => existsSync(door))).not.toContain(false);
  await group.leave();
  expect(procsFiles.map((door) => existsSync(door))).not.toContain(true);
  const gone = resticCommand('true', [], null, procsFiles);
  execFileSync(gone[0], gone.slice(1), { stdio: 'pipe' });
  expect(readdirSync('/sys/fs/cgroup')).not.toContain(name);
});
