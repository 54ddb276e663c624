/** Arguments of commands whose changes are audited: a list, or a change of a subject with `--reason TEXT`. */
import { readArguments, requireNone } from '#shared/runtime/arguments.ts';

const OPTIONS = { reason: { type: 'string' }, database: { type: 'string' } } as const;

/** A group of commands, such as `provider ban HOTKEY`, `provider unban HOTKEY` and `provider audit`. */
type Group<Change extends string> = {
  name: string;
  changes: readonly Change[];
  /** Name of the argument of a change, such as `HOTKEY`. */
  subject: string;
  /** Name of the command that lists. */
  list: string;
};

export type AuditedArguments<Change extends string> = {
  /** Null for the list. */
  change: { name: Change; subject: string; reason: string } | null;
  /** File of `--database`. */
  databaseFile: string | null;
};

/** Throws ConfigError with all problems of the arguments. */
export function auditedArguments<Change extends string>(
  args: readonly string[],
  group: Group<Change>,
): AuditedArguments<Change> {
  const { values, words, problems } = readArguments(args, OPTIONS);
  const { reason, database: databaseFile = null } = values;
  const [command = '', subject, ...more] = words;
  const given = `${group.name} ${command}`.trim();
  const name = group.changes.find((each) => each === command);
  const isList = command === group.list;
  const extra = isList ? words.slice(1) : more;
  const missing = [
    ...(subject === undefined ? [group.subject] : []),
    ...(reason === undefined ? ['--reason TEXT'] : []),
  ];
  requireNone([
    ...problems,
    ...(name === undefined && !isList ? [`unknown command ${given}; see --help`] : []),
    ...(name === undefined ? [] : missing.map((each) => `${given} needs ${each}`)),
    ...(extra.length === 0 ? [] : [`${given} does not take ${extra.join(' ')}; see --help`]),
  ]);
  const isChange = name !== undefined && subject !== undefined && reason !== undefined;
  return { change: isChange ? { name, subject, reason } : null, databaseFile };
}
