/** What is run in a container for each request: fixed scripts, whose data arrives as arguments only. Pure. */

import { MOUNT_POINT } from '../ssh/mount-point.ts';

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

/** sftp-server asks for its user's name, which an image without /etc/passwd cannot tell. */
const SFTP_SCRIPT = `cd 2>/dev/null
[ -e /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
exec "$1" --library-path "$2" "$3"`;

/** Joins stdin and stdout with a port on the pod's own loopback, by whichever program the image has. */
const RELAY_SCRIPT = `
if command -v nc >/dev/null; then exec nc "$1" "$2"
elif command -v busybox >/dev/null; then exec busybox nc "$1" "$2"
elif command -v socat >/dev/null; then exec socat - "TCP:$1:$2"
elif command -v bash >/dev/null; then
  exec bash -c 'exec 3<>"/dev/tcp/$0/$1" && { cat <&3 & cat >&3; }' "$1" "$2"
else exit 127; fi`;

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

/** The mounted sftp-server under its own loader, so that nothing of the image is needed but a shell. */
export function sftpArgv(): string[] {
  const folder = `${MOUNT_POINT}/lib`;
  return script(SFTP_SCRIPT, `${folder}/ld.so`, folder, `${MOUNT_POINT}/sftp-server`);
}

/** A connection to `port` on the pod's loopback. */
export function relayArgv(host: string, port: number): string[] {
  return script(RELAY_SCRIPT, host, String(port));
}

function script(text: string, ...values: string[]): string[] {
  return ['/bin/sh', '-c', text, 'podwright', ...values];
}

const ALWAYS_ALLOWED = /^(?:LANG|LC_[A-Z]{1,32}|TERM)$/;
const MAX_VALUE_CHARS = 4_096;

/** Whether a client may set this variable. */
export function mayBeSet(name: string, value: string, allowed: readonly string[]): boolean {
  const fits = value.length <= MAX_VALUE_CHARS && !value.includes('\0');
  return fits && (ALWAYS_ALLOWED.test(name) || allowed.includes(name));
}
