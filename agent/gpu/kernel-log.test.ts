import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { kernelLine, XID_79 } from '../../test/fixtures/kernel-log.ts';
import { createKernelLog, KERNEL_LOG_PATH } from './kernel-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-kmsg-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('continues after the last returned record, and returns only whole records', () => {
  const path = join(folder, 'kmsg');
  writeFileSync(path, `${kernelLine(1, 'a')}\n SUBSYSTEM=x\n${kernelLine(2, 'b')}\n`);
  const log = createKernelLog(path);
  expect(log.read().map(({ sequence }) => sequence)).toEqual([1, 2]);
  expect(log.read()).toEqual([]);
  appendFileSync(path, kernelLine(3, XID_79).slice(0, 20));
  expect(log.read()).toEqual([]);
  appendFileSync(path, `${kernelLine(3, XID_79).slice(20)}\n`);
  expect(log.read()).toMatchObject([{ sequence: 3, text: XID_79 }]);
  log.close();
});

it('reads a pipe without blocking, with and without a writer', () => {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const log = createKernelLog(path);
  expect(log.read()).toEqual([]);
  appendFileSync(path, `${kernelLine(4, XID_79)}\n`);
  expect(log.read()).toMatchObject([{ sequence: 4, text: XID_79 }]);
  appendFileSync(path, `${kernelLine(5, XID_79)}\n`);
  expect(log.read()).toMatchObject([{ sequence: 5 }]);
  expect(log.read()).toEqual([]);
  log.close();
});

it('limits the size of a batch and of a line, and reads the remaining records in the next call', () => {
  const path = join(folder, 'large');
  const lines = Array.from({ length: 1_500 }, (_, index) => kernelLine(index, 'x'.repeat(800)));
  writeFileSync(path, `${'y'.repeat(100_000)}\n${lines.join('\n')}\n`);
  const log = createKernelLog(path);
  let count = 0;
  for (let batch = log.read(); batch.length > 0; batch = log.read()) count += batch.length;
  expect(count).toBe(1_500);
  log.close();
});

it('throws if there is no log', () => {
  expect(() => createKernelLog(join(folder, 'none')).read()).toThrow(/ENOENT/);
});

/** Reads the real kernel log where that is permitted. */
it('reads the log of this kernel without blocking', () => {
  const log = createKernelLog(KERNEL_LOG_PATH);
  try {
    const records = log.read();
    expect(records.every((record) => Number.isInteger(record.sequence))).toBe(true);
  } catch (error) {
    // No such device, or no permission: the agent warns once and continues.
    expect(String(error)).toMatch(/ENOENT|EACCES|EPERM/);
  }
  log.close();
});
