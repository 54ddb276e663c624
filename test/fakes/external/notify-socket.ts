/**
 * The service manager's end of sd_notify: a Unix datagram socket, which Node cannot open, held by a Perl program of the
 * base system.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';

/**
 * Prints one line for each datagram, its lines separated by `|`, and closes received file descriptors, which ends a
 * barrier.
 */
const RECEIVER = `
use IO::Socket::UNIX; use Socket; $| = 1;
my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0]) or die $!;
print "listening\\n";
while (defined $socket->recv(my $text, 4096)) { $text =~ s/\\n/|/g; print "$text\\n"; }
`;

export type NotifySocket = {
  path: string;
  /** Messages received so far, without barriers. */
  messages(): string[];
  /** Stops reading. */
  close(): Promise<void>;
};

/** Listens in a temporary folder. */
export async function openNotifySocket(): Promise<NotifySocket> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-notify-'));
  const path = join(folder, 'notify');
  const receiver = spawn('perl', ['-e', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => receiver.once('exit', () => resolve()));
  let output = '';
  receiver.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8');
  });
  await eventually('a notify socket', () => output.startsWith('listening\n'));
  return {
    path,
    messages: () =>
      output
        .split('\n')
        .slice(1, -1)
        .filter((line) => line !== '' && line !== 'BARRIER=1'),
    async close() {
      receiver.kill();
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
