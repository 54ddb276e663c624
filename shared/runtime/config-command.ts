/** What every process does for `--check-config` and `--print-config`, and where it finds its configuration refused. */
import { CONFIG_REFUSED, type ConfigLook, type ConfigProblem, type Setting } from './config.ts';

export const CONFIG_COMMANDS = ['--check-config', '--print-config'] as const;
export type ConfigCommand = (typeof CONFIG_COMMANDS)[number];

export type Printer = { out(text: string): void; error(text: string): void };

/** For `--help`. */
export const CONFIG_COMMANDS_HELP = `--check-config   say all that is wrong with the configuration, and stop (exit status 0 or ${CONFIG_REFUSED})
--print-config   print every variable as it counts and where it comes from, without secrets, and stop`;

/** Its exit status. `further`: problems beyond variables, as of the files that they name. */
export function runConfigCommand(
  command: ConfigCommand,
  { settings, problems, warnings }: ConfigLook<unknown>,
  further: readonly string[],
  { out, error }: Printer,
): number {
  if (command === '--print-config') out(settingsText(settings));
  for (const { message } of warnings) error(`warning: ${message}\n`);
  const wrong = [...problems.map(({ message }) => message), ...further];
  if (wrong.length > 0) {
    error(`configuration refused:\n  ${wrong.join('\n  ')}\n`);
    return CONFIG_REFUSED;
  }
  if (command === '--check-config') out('configuration accepted\n');
  return 0;
}

/** One line for each variable. */
export function settingsText(settings: readonly Setting[]): string {
  const width = Math.max(...settings.map(({ name }) => name.length));
  const line = ({ name, value, source }: Setting) =>
    `${name.padEnd(width)}  ${source.padEnd('environment'.length)}  ${value ?? '(none)'}`;
  return `${settings.map(line).join('\n')}\n`;
}

/** Says at the start which variables nobody reads. */
export function warnOfUnknown(
  warnings: readonly ConfigProblem[],
  log: { warn(message: string): void },
): void {
  for (const { message } of warnings) log.warn(message);
}

/** The words of the first error, for problems beyond variables; none when `work` succeeds. */
export function problemsOf(...work: readonly (() => unknown)[]): string[] {
  return work.flatMap((each) => {
    try {
      each();
      return [];
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)];
    }
  });
}
