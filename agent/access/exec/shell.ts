/** Shells in a container, of whatever image: fixed scripts, whose data arrives as arguments only. Pure. */

/** The best shell there is becomes the login shell; the home folder is where a login begins. */
const PRELUDE = `cd 2>/dev/null
for name in bash ash sh; do SHELL=$(command -v "$name") && break; done
export SHELL
`;

const SHELL_SCRIPT = `${PRELUDE}
[ "$1" -gt 0 ] && command -v stty >/dev/null && stty rows "$1" cols "$2"
exec "$SHELL" -l`;

const COMMAND_SCRIPT = `${PRELUDE}
[ "$1" -gt 0 ] && command -v stty >/dev/null && stty rows "$1" cols "$2"
exec "$SHELL" -c "$3"`;

export type TerminalSize = { rows: number; columns: number };

const NO_TERMINAL: TerminalSize = { rows: 0, columns: 0 };

/** A login shell. */
export function shellArgv(size: TerminalSize = NO_TERMINAL): string[] {
  return script(SHELL_SCRIPT, String(size.rows), String(size.columns));
}

/** `command` as the login shell reads it. */
export function commandArgv(command: string, size: TerminalSize = NO_TERMINAL): string[] {
  return script(COMMAND_SCRIPT, String(size.rows), String(size.columns), command);
}

/** `text` run by the image's own shell; `values` are its $1, $2, and so on. */
export function script(text: string, ...values: string[]): string[] {
  return ['/bin/sh', '-c', text, 'podwright', ...values];
}
