/** The command line of `diag`, the same for every process. */
import { access, constants } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { type Clock, naiveUtc } from '../../runtime/clock.ts';
import { messageOf } from '../../runtime/errors.ts';
import { fileProblem } from '../../runtime/files.ts';
import type { Progress } from '../../runtime/progress.ts';
import type { Random } from '../../runtime/random.ts';
import { type Part, writeBundle } from './bundle.ts';
import type { Redact } from './redact.ts';

const WRONG_USAGE = 2;

export type DiagRun = {
  /** `agent` or `validator`. */
  program: string;
  args: readonly string[];
  clock: Clock;
  random: Random;
  print(text: string): void;
  complain(text: string): void;
  progress: Progress;
  /** `logs`: files that were named. */
  collect(logs: readonly string[]): Promise<{ parts: readonly Part[]; redact: Redact }>;
};

function helpOf(program: string): string {
  return `Usage: npm run ${program} -- diag [--out FILE] [--log FILE]…

Writes one archive (tar.gz, mode 0600) with what helps to find out what is wrong: versions, configuration,
findings of the doctor, journal, a summary of the store, metrics. Secrets are left out or hidden; look into
it before you send it on. Works while the ${program} runs or not. It takes the ${program}'s variables.

  --out FILE   where to (default podwright-${program}-diag-<time>.tar.gz here)
  --log FILE   the end of this log too, where the ${program} logs to no journal; may be repeated
  --help       print this
`;
}

/** The exit status: 0 when there is an archive, 1 when it cannot be written, 2 for wrong usage. */
export async function runDiag(run: DiagRun): Promise<number> {
  const options = readOptions(run.args);
  if (typeof options === 'string') {
    run.complain(`${options}\n\n${helpOf(run.program)}`);
    return WRONG_USAGE;
  }
  if (options.help) {
    run.print(helpOf(run.program));
    return 0;
  }
  const time = naiveUtc(run.clock.now()).replaceAll(/[:.]/g, '-');
  const path = options.out ?? `podwright-${run.program}-diag-${time}.tar.gz`;
  for (const log of options.log) {
    const problem = await problemOfLog(log);
    if (problem !== null) run.complain(`--log: ${problem}\n`);
  }
  try {
    const { parts, redact } = await run.collect(options.log);
    const bundle = await writeBundle(path, parts, { ...run, redact }).finally(run.progress.end);
    for (const { name, chars } of bundle.parts) run.print(`  ${name}, ${chars} characters\n`);
    run.print(`${path}, ${bundle.bytes} bytes\n`);
    return 0;
  } catch (error) {
    run.complain(`${messageOf(error)}\n`);
    return 1;
  }
}

/** The archive is made all the same; null for one that can be read. */
function problemOfLog(path: string): Promise<string | null> {
  return access(path, constants.R_OK).then(
    () => null,
    (error: unknown) => fileProblem(path, error),
  );
}

function readOptions(args: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { out: text, log: { ...text, multiple: true }, help: { type: 'boolean' } },
    });
    return { out: values.out ?? null, log: values.log ?? [], help: values.help === true };
  } catch (error) {
    return messageOf(error);
  }
}
