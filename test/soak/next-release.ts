/** Builds the image of a release: this checkout with a higher version, by the script behind `npm run image`. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { command } from '../fakes/agents/real-host.ts';
import { importImageBase } from '../fakes/engine/image-base.ts';

export const NEXT_VERSION = '0.1.1';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Parts of a release, as in systemd/release.sh. */
const PARTS = [
  ...['agent', 'shared', 'validator', 'systemd'],
  ...['package.json', 'package-lock.json', 'README.md', 'LICENSE'],
];
const BUILD = { timeoutMs: 600_000, maxOutputBytes: 1024 * 1024 };

/**
 * Builds the image on a base image whose shell and libraries are copied from this host. Throws with the output of the
 * script if the build fails.
 */
export async function buildNextRelease(reference: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-next-'));
  const base = `podwright-update-drill-${systemRandom.uuid().slice(0, 8)}:base`;
  try {
    for (const part of PARTS) {
      cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    }
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const file of ['package.json', 'package-lock.json']) {
      const text = readFileSync(join(folder, file), 'utf8');
      writeFileSync(join(folder, file), text.replace(VERSION, NEXT_VERSION));
    }
    await importImageBase(base, ROOT);
    const args = ['--tag', reference, '--base', base, '--packages', ''];
    const script = join(folder, 'systemd/image/build.sh');
    const { exitCode, stdout, stderr } = await runCommand('sh', [script, ...args], BUILD);
    if (exitCode !== 0) throw new Error(`${stdout}${stderr}`);
  } finally {
    await command('docker', 'rmi', base);
    rmSync(folder, { recursive: true });
  }
}
