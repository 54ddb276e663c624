import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createHandover, createSuccessorLookup } from './handover.ts';

const log = createLog({ name: 'test', level: 'silent' });

it('waits for the last session, tries each release once, and does not hand over to a release that does not start', async () => {
  const scene = { successor: null as string | null, isFree: false };
  const tried: string[] = [];
  const handOver = createHandover({
    log,
    successor: () => scene.successor,
    problemOf: async (folder) => {
      tried.push(folder);
      return folder === 'broken' ? 'it does not start' : null;
    },
    closeIfIdle: () => scene.isFree,
  });
  expect(await handOver()).toBe(false);
  scene.successor = 'second';
  expect([await handOver(), await handOver()]).toEqual([false, false]);
  Object.assign(scene, { successor: 'broken', isFree: true });
  expect([await handOver(), await handOver()]).toEqual([false, false]);
  scene.successor = 'second';
  expect(await handOver()).toBe(true);
  expect(tried).toEqual(['second', 'broken', 'second']);
});

it('accepts only the current release as successor, and only if the gateway does not run from it and its probation is over', () => {
  const root = mkdtempSync(join(tmpdir(), 'podwright-succession-'));
  try {
    mkdirSync(join(root, 'releases'));
    const own = join(root, 'releases/one');
    const successor = createSuccessorLookup(root, own);
    expect(successor()).toBeNull();
    symlinkSync('releases/one', join(root, 'current'));
    expect(successor()).toBeNull();
    writeFileSync(join(root, 'trial'), 'releases/one\n');
    rmSync(join(root, 'current'));
    symlinkSync('releases/two', join(root, 'current'));
    expect(successor()).toBeNull();
    rmSync(join(root, 'trial'));
    expect(successor()).toBe(join(root, 'releases/two'));
    expect(createSuccessorLookup(root, '/a/checkout')()).toBeNull();
  } finally {
    rmSync(root, { recursive: true });
  }
});
