import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { runClient, type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';

let host: SshHost;
let pod: PodView;

beforeAll(async () => {
  host = await startSshHost();
  pod = await host.launch({ environment: { COLOUR: 'green' } });
});
afterAll(() => host.stop());

const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex');

async function alive(command: string): Promise<boolean> {
  const { stdout } = await host.ssh(pod, ['ps']);
  return stdout.toString().includes(command);
}

describe('a command', () => {
  it('runs in the pod, reads its input, and returns separate outputs and its exit status', async () => {
    const { code, stdout, stderr } = await host.ssh(
      pod,
      ['cat; echo "$COLOUR $USER $HOME $(pwd)"; echo bad >&2; exit 7'],
      'given ',
    );
    expect(stdout.toString()).toBe('given green root /root /root\n');
    expect({ code, stderr }).toEqual({ code: 7, stderr: 'bad\n' });
  });

  it('is interpreted by the shell exactly once', async () => {
    const hostile = `'"; echo $((6 * 7)) "$(echo x)" \\`;
    const { stdout } = await host.ssh(pod, [`printf %s ${shellQuoted(hostile)}`]);
    expect(stdout.toString()).toBe(hostile);
  });

  it('receives only the allowed variables', async () => {
    const set = ['-o', 'SetEnv=LC_TEST=yes LD_PRELOAD=/evil COLOUR=blue'];
    const { stdout } = await runClient('ssh', [
      ...host.options(host.portOf(pod)),
      ...set,
      'root@127.0.0.1',
      'echo "$LC_TEST|$LD_PRELOAD|$COLOUR"',
    ]);
    expect(stdout.toString()).toBe('yes||blue\n');
  });

  it('transfers megabytes of arbitrary bytes unchanged', async () => {
    const data = randomBytes(3_000_000);
    const { stdout } = await host.ssh(pod, ['cat'], data);
    expect(sha256(stdout)).toBe(sha256(data));
  });

  it('ends when its client disconnects', async () => {
    const child = host.spawnSsh(pod, ['echo up; exec sleep 4321']);
    await new Promise((resolve) => child.stdout.once('data', resolve));
    expect(await alive('sleep 4321')).toBe(true);
    child.kill('SIGKILL');
    await eventually('the end of the command', async () => !(await alive('sleep 4321')));
  });
});

describe('a terminal', () => {
  it('is allocated on request, has the size of the client’s terminal and follows its changes', async () => {
    // `script` runs ssh in a separate terminal; resizing that sends a window change.
    const ssh = ['ssh', ...host.options(host.portOf(pod)), '-tt', 'root@127.0.0.1'].join(' ');
    const inside =
      'stty size; echo ready; until stty size | grep -q "50 120"; do sleep 0.1; done; tty';
    const seen = join(host.home, 'seen');
    const outside = [
      'stty rows 33 cols 99',
      `(${ssh} ${shellQuoted(inside)} | tee ${seen}) </dev/tty & job=$!`,
      `until grep -q ready ${seen}; do sleep 0.05; done`,
      'stty rows 50 cols 120',
      'wait $job',
    ].join('\n');
    writeFileSync(seen, '');
    const { stdout } = await runClient('script', ['-qec', outside, '/dev/null']);
    const text = stdout.toString();
    expect(text).toContain('33 99');
    expect(text).toMatch(/\/dev\/pts\/\d/);
  });

  it('runs a login shell and returns its exit status', async () => {
    const { code, stdout } = await host.ssh(pod, ['-tt'], 'echo $0 $SHELL\nexit 5\n');
    expect(stdout.toString()).toMatch(/ash|sh/);
    expect(code).toBe(5);
  });
});

describe('files', () => {
  it('are transferred by sftp in both directions unchanged', async () => {
    const data = randomBytes(1_000_000);
    const [from, back] = [join(host.home, 'from'), join(host.home, 'back')];
    writeFileSync(from, data);
    const batch = `put ${from} /tmp/there\nget /tmp/there ${back}\nls /tmp\n`;
    const args = [...host.options(host.portOf(pod)), '-b', '-', 'root@127.0.0.1'];
    const { code, stdout } = await runClient('sftp', args, batch);
    expect(code).toBe(0);
    expect(stdout.toString()).toContain('/tmp/there');
    expect(sha256(readFileSync(back))).toBe(sha256(data));
    const sum = await host.ssh(pod, ['sha256sum /tmp/there']);
    expect(sum.stdout.toString()).toContain(sha256(data));
  });
});

describe('port forwarding', () => {
  it("reaches only the pod's services", async () => {
    // A service on this host that pods must not reach.
    const secret = createServer((socket) => socket.end('secret'));
    await new Promise<void>((resolve) => secret.listen(0, '127.0.0.1', resolve));
    const address = secret.address();
    const secretPort = typeof address === 'object' ? (address?.port ?? 0) : 0;
    const { first } = await freePorts(3);
    const [inside, own, foreign] = [first, first + 1, first + 2];
    const { stdout } = await host.ssh(pod, ['tail -n 1 /etc/hosts | cut -f 1']);
    const ip = stdout.toString().trim();
    const tunnel = host.spawnSsh(pod, [
      ...['-N', '-L', `${inside}:localhost:8000`],
      ...['-L', `${own}:${ip}:8000`, '-L', `${foreign}:172.17.0.1:${secretPort}`],
    ]);
    try {
      const page = (port: number) =>
        fetch(`http://127.0.0.1:${port}/`).then(
          (answer) => answer.text(),
          () => null,
        );
      expect(await eventually('the tunnel', () => page(inside))).toContain('This pod is running.');
      expect(await page(own)).toContain('This pod is running.');
      expect(await page(foreign)).toBeNull();
    } finally {
      tunnel.kill();
      secret.close();
    }
  });

  it('is not possible in reverse', async () => {
    const { first } = await freePorts(1);
    const reverse = ['-o', 'ExitOnForwardFailure=yes', '-N', '-R', `${first}:localhost:1`];
    const args = [...host.options(host.portOf(pod)), ...reverse, 'root@127.0.0.1'];
    expect((await runClient('ssh', args)).code).toBe(255);
  });
});

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
