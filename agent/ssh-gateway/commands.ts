/** Command lines for SFTP and port forwarding, and the variables that clients may set. Pure. */
import { script } from '../access/exec/shell.ts';
import { MOUNT_POINT } from '../pods/pod-ssh.ts';

/**
 * Starts sftp-server. sftp-server looks up the user's name, so the script creates /etc/passwd if the image has none.
 */
const SFTP_SCRIPT = `cd 2>/dev/null
[ -e /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
exec "$1" --library-path "$2" "$3"`;

/** Connects stdin and stdout with a port on the pod's loopback, using any suitable program of the image. */
const RELAY_SCRIPT = `
if command -v nc >/dev/null; then exec nc "$1" "$2"
elif command -v busybox >/dev/null; then exec busybox nc "$1" "$2"
elif command -v socat >/dev/null; then exec socat - "TCP:$1:$2"
elif command -v bash >/dev/null; then
  exec bash -c 'exec 3<>"/dev/tcp/$0/$1" && { cat <&3 & cat >&3; }' "$1" "$2"
else exit 127; fi`;

/** Runs the mounted sftp-server under its own loader, so that the image needs only a shell. */
export function sftpArgv(): string[] {
  const folder = `${MOUNT_POINT}/lib`;
  return script(SFTP_SCRIPT, `${folder}/ld.so`, folder, `${MOUNT_POINT}/sftp-server`);
}

/** Connects to `port` on the pod's loopback. */
export function relayArgv(host: string, port: number): string[] {
  return script(RELAY_SCRIPT, host, String(port));
}

const ALWAYS_ALLOWED = /^(?:LANG|LC_[A-Z]{1,32}|TERM)$/;
const MAX_VALUE_CHARS = 4_096;

/** Returns true if a client may set this variable. */
export function mayBeSet(name: string, value: string, allowed: readonly string[]): boolean {
  const fits = value.length <= MAX_VALUE_CHARS && !value.includes('\0');
  return fits && (ALWAYS_ALLOWED.test(name) || allowed.includes(name));
}
