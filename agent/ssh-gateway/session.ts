/** One session channel of a client: environment, terminal, then a shell, a command or SFTP (RFC 4254, 6). */
import type { ServerChannel, Session } from 'ssh2';
import { SESSION_MARK, SIGNALS } from '../access/exec/container-process.ts';
import { type ProcessPorts, type RunningProcess, runProcess } from '../access/exec/run-process.ts';
import { commandArgv, shellArgv, type TerminalSize } from '../access/exec/shell.ts';
import type { GatewayPod } from '../access/ssh/gateway-files.ts';
import { mayBeSet, sftpArgv } from './commands.ts';
import { channelClient, type Meter } from './pump.ts';

export type SessionPod = Pick<GatewayPod, 'id' | 'user' | 'environment_names' | 'sftp'> & {
  container_id: string;
};

const MAX_VARIABLES = 64;
const MAX_COLUMNS = 4_096;
const DEFAULT_TERM = 'xterm';

/** Calls `onEnd` once, when the channel closes. */
export function serveSession(
  ports: ProcessPorts,
  session: Session,
  options: {
    pod: SessionPod;
    connection: string;
    meter: Meter;
    /** Aborts when the connection ends. */
    disconnected: AbortSignal;
    onEnd(): void;
  },
): void {
  const { pod, meter } = options;
  const environment: Record<string, string> = { SSH_CONNECTION: options.connection };
  let size: TerminalSize | null = null;
  let running: RunningProcess | null = null;
  const channelClosed = new AbortController();
  const closed = AbortSignal.any([channelClosed.signal, options.disconnected]);

  function run(accept: () => ServerChannel, argv: string[], tty: boolean): void {
    const request = {
      containerId: pod.container_id,
      user: pod.user,
      argv,
      tty,
      environment: {
        ...environment,
        USER: pod.user,
        LOGNAME: pod.user,
        [SESSION_MARK]: pod.id,
      },
    };
    // In a terminal the end of input is not passed on, because it would end the output too.
    const client = channelClient(accept(), { meter, closed, endInput: !tty });
    running = runProcess(ports, { client, request, size: tty ? size : null, closed });
  }

  session.on('env', (accept, reject, { key, val }) => {
    const room = Object.keys(environment).length < MAX_VARIABLES;
    if (!room || !mayBeSet(key, val, pod.environment_names)) return reject?.();
    environment[key] = val;
    accept?.();
  });
  session.on('pty', (accept, _reject, info) => {
    size = sizeOf(info);
    // Missing in ssh2's types, but every client sends it.
    const term = 'term' in info && typeof info.term === 'string' ? info.term : '';
    environment['TERM'] = /^[\w.+-]{1,64}$/.test(term) ? term : DEFAULT_TERM;
    accept?.();
  });
  session.on('window-change', (accept, _reject, info) => {
    size = sizeOf(info);
    running?.resize(size);
    accept?.();
  });
  session.on('signal', (accept, _reject, { name }) => {
    const known = SIGNALS.find((signal) => signal === name.replace(/^SIG/, ''));
    if (known !== undefined) running?.signal(known);
    accept?.();
  });
  session.on('shell', (accept) => run(accept, shellArgv(size ?? undefined), size !== null));
  session.on('exec', (accept, _reject, { command }) =>
    run(accept, commandArgv(command, size ?? undefined), size !== null),
  );
  session.on('subsystem', (accept, reject, { name }) => {
    if (name !== 'sftp' || !pod.sftp) return reject();
    run(accept, sftpArgv(), false);
  });
  // Also ends the session of a client that closes the channel without any request.
  session.once('close', () => channelClosed.abort());
  closed.addEventListener('abort', options.onEnd, { once: true });
}

function sizeOf({ rows, cols }: { rows: number; cols: number }): TerminalSize {
  return { rows: Math.min(rows, MAX_COLUMNS), columns: Math.min(cols, MAX_COLUMNS) };
}
