/**
 * The engine of every doctor (agent, validator, marketplace): parses options, collects facts, runs the checks, prints
 * the report and returns the exit status. With `--archive FILE` it writes the diagnosis archive instead.
 */
import type { ParseArgsOptionsConfig } from 'node:util';
import { z } from 'zod';
import { type Clock, systemClock } from '../runtime/clock.ts';
import type { Environment } from '../runtime/config.ts';
import { messageOf } from '../runtime/errors.ts';
import { createCommandProgress, type Progress } from '../runtime/progress.ts';
import { type Random, systemRandom } from '../runtime/random.ts';
import { type RunCommand, runCommand } from '../runtime/run-command.ts';
import { type ArchiveSource, readArchiveOptions, writeArchiveFile } from './archive/archive.ts';
import {
  CHECK_STATUSES,
  type Check,
  type CheckDefinition,
  type CheckStatus,
  type Outcome,
} from './check.ts';

export type DoctorCheck<Facts> = Check<Facts> & {
  /** Returns false if the report omits the check. Absent: the report always contains it. */
  applies?(facts: Facts): boolean;
};

/** One line of a report, and one object of its JSON. */
export const Finding = z.strictObject({
  id: z.string(),
  status: z.enum(CHECK_STATUSES),
  /** The condition that must hold. */
  required: z.string(),
  /** The measured value. */
  finding: z.string(),
  /** True if a deadline expired before the value was known. */
  timed_out: z.boolean(),
  remedy: z.string().nullable(),
});
export type Finding = z.output<typeof Finding>;

export function findingOf(
  { id, required }: Pick<CheckDefinition, 'id' | 'required'>,
  { status, measured, remedy, timedOut }: Outcome,
): Finding {
  const timed_out = timedOut === true;
  return { id, status, required, finding: measured, timed_out, remedy: remedy ?? null };
}

/** Runs the checks that apply, in the given order. */
export function findingsOf<Facts>(checks: readonly DoctorCheck<Facts>[], facts: Facts): Finding[] {
  return checks
    .filter(({ applies }) => applies?.(facts) ?? true)
    .map((check) => findingOf(check, check.judge(facts)));
}

/** Ports with which the facts are collected. */
export type DoctorPorts = {
  clock: Clock;
  random: Random;
  runCommand: RunCommand;
  /** Variables of the process that is examined. */
  environment: Environment;
};

export function systemDoctorPorts(environment: Environment): DoctorPorts {
  return { clock: systemClock, random: systemRandom, runCommand, environment };
}

/** Options of every doctor. */
export const DOCTOR_OPTIONS = {
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
  archive: { type: 'string' },
  log: { type: 'string', multiple: true },
} as const satisfies ParseArgsOptionsConfig;

export type DoctorOptions = {
  json: boolean;
  help: boolean;
  archive?: string | undefined;
  /** Log files whose end is added to the archive. */
  log?: string[] | undefined;
};

export type Doctor<Options extends DoctorOptions = DoctorOptions> = {
  /** Program name at the beginning of error messages. */
  program: string;
  help: string;
  /** Parses the arguments. Throws the problem with them, which is printed above the help. */
  readOptions(args: readonly string[]): Options;
  /** Shown while the facts are collected. */
  step: string;
  /** Throws UsageError if there is nothing to examine. */
  examine(options: Options): Promise<readonly Finding[]>;
  /** Returns the parts of the diagnosis archive. */
  archive(logs: readonly string[], options: Options): ReturnType<ArchiveSource>;
};

/** A command that cannot run as typed. The message is printed without the help. */
export class UsageError extends Error {}

export type DoctorTerminal = {
  out(text: string): void;
  error(text: string): void;
  progress: Progress;
  /** True if the output is a terminal that shows colours. */
  colours: boolean;
  /** Folder of the caller, to which paths of archives are relative. */
  folder: string;
};

export function doctorTerminal({ NO_COLOR, INIT_CWD }: Environment): DoctorTerminal {
  const { stdout, stderr } = process;
  return {
    out: (text) => void stdout.write(text),
    error: (text) => void stderr.write(text),
    progress: createCommandProgress(systemClock, stderr),
    colours: stdout.isTTY === true && !NO_COLOR,
    folder: INIT_CWD || '.',
  };
}

const FAILED = 1;
const WRONG_USAGE = 2;
const TIMED_OUT = 3;

/** Returns the exit status of a report. Unknown facts count only if a deadline expired: repeating may clarify them. */
function statusOf(findings: readonly Finding[]): number {
  if (findings.some(({ status }) => status === 'fail')) return FAILED;
  return findings.some(({ timed_out }) => timed_out) ? TIMED_OUT : 0;
}

/** Description of the report and of the exit status, for the help of every doctor. */
export const DOCTOR_EXIT_HELP = `Exit status: 0 no check fails, 1 at least one does, 2 wrong usage, 3 no check fails, but at least one ran into
its time limit (status unknown, timed_out): repeat the command when the host is less busy.`;
export const DOCTOR_JSON_HELP = 'print [{"id","status","required","finding","timed_out","remedy"}]';

/**
 * Returns the exit status: that of the report, 1 if the archive cannot be written, 2 for wrong usage.
 */
export async function runDoctor<Options extends DoctorOptions>(
  doctor: Doctor<Options>,
  args: readonly string[],
  terminal: DoctorTerminal,
): Promise<number> {
  const { program, help } = doctor;
  const refuse = (message: string) => {
    terminal.error(`${program}: ${message}\n`);
    return WRONG_USAGE;
  };
  let options: Options;
  try {
    options = doctor.readOptions(args);
  } catch (error) {
    return refuse(`${messageOf(error)}\n\n${help.trimEnd()}`);
  }
  if (options.help) {
    terminal.out(help);
    return 0;
  }
  const { archive: path, log: logs = [] } = options;
  if (path === undefined && logs.length > 0) return refuse('--log needs --archive');
  if (path !== undefined) {
    const target = { program, path, option: '--archive', logs };
    return writeArchiveFile(target, (files) => doctor.archive(files, options), terminal);
  }
  terminal.progress.step(doctor.step);
  try {
    const findings = await doctor.examine(options);
    terminal.progress.end();
    terminal.out(options.json ? jsonReport(findings) : textReport(findings, terminal.colours));
    return statusOf(findings);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return refuse(error.message);
  } finally {
    terminal.progress.end();
  }
}

/**
 * Runs `diag`, the older name of `doctor --archive FILE`. `name` is the process in `npm run NAME -- diag`.
 * Returns the exit status: 0 if the archive was written, 1 if not, 2 for wrong usage.
 */
export async function runDiag<Options extends DoctorOptions>(
  name: string,
  doctor: Pick<Doctor<Options>, 'program' | 'readOptions' | 'archive'>,
  args: readonly string[],
  terminal: DoctorTerminal,
): Promise<number> {
  const { program } = doctor;
  const options = readArchiveOptions(name, args);
  if ('problem' in options) {
    terminal.error(`${program}: ${options.problem}\n`);
    return WRONG_USAGE;
  }
  if ('help' in options) {
    terminal.out(options.help);
    return 0;
  }
  const source: ArchiveSource = (logs) => doctor.archive(logs, doctor.readOptions([]));
  return writeArchiveFile({ program, option: '--out', ...options }, source, terminal);
}

const COLOURS: Record<CheckStatus, number> = { ok: 32, warn: 33, fail: 31, unknown: 36 };
const STATUS_WIDTH = 'unknown'.length;
const MAX_CHARS = 500;

/** Formats a line per finding, for those that are not ok the requirement and the remedy, and a line with totals. */
export function textReport(findings: readonly Finding[], colours: boolean): string {
  const width = Math.max(...findings.map(({ id }) => id.length));
  const indent = `${' '.repeat(STATUS_WIDTH)}  `;
  const lines = findings.flatMap(({ id, status, required, finding, remedy }) => {
    const padded = status.padEnd(STATUS_WIDTH);
    const shown = colours ? `\u001b[${COLOURS[status]}m${padded}\u001b[0m` : padded;
    const first = `${shown}  ${id.padEnd(width)}  ${plain(finding)}`;
    return [
      first,
      ...(status === 'ok' ? [] : [`${indent}required: ${plain(required)}`]),
      ...(remedy === null ? [] : [`${indent}→ ${plain(remedy)}`]),
    ];
  });
  const totals = CHECK_STATUSES.map(
    (status) => `${findings.filter((finding) => finding.status === status).length} ${status}`,
  );
  return `${[...lines, '', totals.join(', ')].join('\n')}\n`;
}

export function jsonReport(findings: readonly Finding[]): string {
  return `${JSON.stringify(findings, null, 2)}\n`;
}

/** Removes control characters and truncates: findings quote other programs. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').slice(0, MAX_CHARS);
}
