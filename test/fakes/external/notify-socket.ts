/**
 * The service manager's end of sd_notify: a Unix datagram socket, which Node cannot open, so a Perl program of the base
 * system opens it.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';

/**
 * Prints one line for each datagram, with `|` in place of its line breaks. Closes received file descriptors, which
 * completes a barrier (sd_notify_barrier).
 */
const RECEIVER = `
use IO::Socket::UNIX; use Socket; $| = 1;
my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $ARGV[0]) or die $!;
print "listening\\n";
while (defined $socket->recv(my $text, 4096)) { $text =~ s/\\n/|/g; print "$text\\n"; }
`;

export type NotifySocket = {
  path: string;
  /** Messages received so far, except barriers. */
  messages(): string[];
  /** Ends the receiver. */
  close(): Promise<void>;
};

/** Opens a socket in a temporary folder. */
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
