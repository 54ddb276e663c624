/** Shell command lines for containers of any image: fixed scripts, data passed only as arguments. Pure. */

/** Changes to the home folder and chooses the best shell of the image. */
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

/** Starts a login shell. */
export function shellArgv(size: TerminalSize = NO_TERMINAL): string[] {
  return script(SHELL_SCRIPT, String(size.rows), String(size.columns));
}

/** Runs `command` in the shell. */
export function commandArgv(command: string, size: TerminalSize = NO_TERMINAL): string[] {
  return script(COMMAND_SCRIPT, String(size.rows), String(size.columns), command);
}

/** Runs `text` in the image's /bin/sh; `values` are $1, $2, and so on. */
export function script(text: string, ...values: string[]): string[] {
  return ['/bin/sh', '-c', text, 'podwright', ...values];
}
