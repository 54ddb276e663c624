/** Files with the texts of --help, which `systemd/run.sh` prints where no packages are installed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');

/** Folders of the programs that the scripts of package.json run; each has `main.ts` and `help.txt`. */
export const HELP_FOLDERS = [
  'agent',
  'agent/ssh-gateway',
  'test/bench',
  'test/interface',
  'test/run',
  'test/soak',
  'validator',
  'validator/central',
  'validator/embedded',
  'validator/embedded/doctor',
  'validator/provider-cli',
  'validator/simulate',
];

/** Output of a program with one argument. */
export async function outputOf(folder: string, argument: '--help' | '--version'): Promise<string> {
  const main = join(ROOT, folder, 'main.ts');
  return (await promisify(execFile)(process.execPath, [main, argument])).stdout;
}
