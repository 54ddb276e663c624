/** Arguments of commands whose changes are audited: words, `--reason TEXT` and `--database FILE`. */
import { parseArgs } from 'node:util';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';

/** Throws ConfigError for an unknown option. */
export function auditedArguments(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { reason: { type: 'string' }, database: { type: 'string' } },
    });
    const { reason = null, database: databaseFile = null } = values;
    return { words: positionals, reason, databaseFile };
  } catch (error) {
    // Drops the explanation of positional arguments that Node appends to its message.
    const [first] = messageOf(error).split('. ');
    throw new ConfigError(`${first}; see --help`);
  }
}
