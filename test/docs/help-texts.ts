/** Files with the texts of --help, which `systemd/run.sh` prints where no packages are installed. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');

/** Programs and commands that the scripts of package.json run. */
const PROGRAMS = [
  'agent/main.ts',
  'agent/main.ts host',
  'agent/ssh-gateway/main.ts',
  'test/bench/main.ts',
  'test/docs/main.ts',
  'test/interface/main.ts',
  'test/record/main.ts',
  'test/run/main.ts',
  'test/soak/main.ts',
  'validator/main.ts',
  'validator/central/main.ts',
  'validator/embedded/main.ts',
  'validator/embedded/doctor/main.ts',
  'validator/provider-cli/main.ts',
  'validator/simulate/main.ts',
];

/** The text of a program is in help.txt beside it, that of its command NAME in help-NAME.txt. */
export const HELP_TEXTS = PROGRAMS.map((program) => ({
  program,
  path: program.replace(/main\.ts(?: (\w+))?$/, (_, command?: string) =>
    command === undefined ? 'help.txt' : `help-${command}.txt`,
  ),
}));

/** Output of a program, or of its command, with one argument. */
export async function outputOf(program: string, argument: '--help' | '--version'): Promise<string> {
  const [main = '', ...words] = program.split(' ');
  const args = [join(ROOT, main), ...words, argument];
  return (await promisify(execFile)(process.execPath, args)).stdout;
}
