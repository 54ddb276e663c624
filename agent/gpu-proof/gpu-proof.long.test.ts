/** Compiles the GPU proof for cards if there is a CUDA compiler; no card is needed or used. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';

const SOURCE = join(import.meta.dirname, 'device.cu');
const BOUNDS = { timeoutMs: 120_000, maxOutputBytes: 1_000_000 };

it('compiles for cards if there is a CUDA compiler', async () => {
  const found = await runCommand('sh', ['-c', 'command -v nvcc'], BOUNDS);
  if (found.exitCode !== 0) {
    process.stderr.write(
      'gpu-proof: nvcc is not installed; compared with the verifier on a CPU only\n',
    );
    return expect(found.stdout).toBe('');
  }
  const folder = mkdtempSync(join(tmpdir(), 'podwright-gpu-proof-'));
  const options = ['-O2', '-std=c++17', '-arch=sm_75', '-c', SOURCE];
  const compiled = await runCommand('nvcc', [...options, '-o', join(folder, 'device.o')], BOUNDS);
  rmSync(folder, { recursive: true });
  expect(compiled).toMatchObject({ exitCode: 0 });
  process.stderr.write('gpu-proof: compiled for cards by nvcc, not run on one\n');
}, 180_000);
