import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';
import { parseLdd, prepareSftpFolder } from './sftp-folder.ts';

it('parses the output of ldd', () => {
  const text = `\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n`;
  expect(parseLdd(text)).toEqual({
    loader: '/lib64/ld-linux-x86-64.so.2',
    libraries: ['/lib/libc.so.6'],
  });
  expect(parseLdd('\tnot a dynamic executable\n')).toBeNull();
});

it('creates a folder whose sftp-server runs under its own loader, also when called again', async () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-sftp-'));
  try {
    const folder = join(home, 'sftp');
    expect(await prepareSftpFolder(folder, runCommand)).toBe(true);
    expect(await prepareSftpFolder(folder, runCommand)).toBe(true);
    const server = ['--library-path', join(folder, 'lib'), join(folder, 'sftp-server'), '-Q'];
    const args = [...server, 'requests'];
    expect(execFileSync(join(folder, 'lib', 'ld.so'), args, { encoding: 'utf8' })).toMatch(/open/);
    expect(await prepareSftpFolder(folder, runCommand, ['/nowhere'])).toBe(false);
  } finally {
    rmSync(home, { recursive: true });
  }
});
