import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { runClient, type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { copyPrograms } from '../../test/fakes/engine/host-programs.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';

const BIG_BYTES = 10 * 1024 * 1024;

let host: SshHost;
let pod: PodView;

beforeAll(async () => {
  host = await startSshHost();
  pod = await host.launch();
});
afterAll(() => host.stop());

const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex');

describe('rsync in an image that contains it', () => {
  it('uploads a folder, then only its changes, and downloads the folder', async () => {
    await copyPrograms(pod.container_id ?? '', 'rsync');
    const [from, back] = [join(host.home, 'tree'), join(host.home, 'tree-back')];
    mkdirSync(join(from, 'below'), { recursive: true });
    const big = randomBytes(BIG_BYTES);
    writeFileSync(join(from, 'big'), big);
    writeFileSync(join(from, 'below', 'ünï cödé'), 'small');
    const shell = ['ssh', ...host.options(host.portOf(pod))].join(' ');
    const rsync = (...paths: string[]) =>
      runClient('rsync', ['-a', '--delete', '--stats', '-e', shell, ...paths]);

    expect((await rsync(`${from}/`, 'root@127.0.0.1:/tree/')).code).toBe(0);
    big.write('changed', 1_000);
    writeFileSync(join(from, 'big'), big);
    // Size and modification second may equal those of the first copy.
    const again = await rsync(
      '--no-whole-file',
      '--ignore-times',
      `${from}/`,
      'root@127.0.0.1:/tree/',
    );
    expect(again.code).toBe(0);
    const sent = /Literal data: ([\d,]+)/.exec(again.stdout.toString())?.[1] ?? '';
    expect(Number(sent.replaceAll(',', ''))).toBeGreaterThan(0);
    expect(Number(sent.replaceAll(',', ''))).toBeLessThan(BIG_BYTES / 100);

    expect((await rsync('root@127.0.0.1:/tree/', `${back}/`)).code).toBe(0);
    expect(sha256(readFileSync(join(back, 'big')))).toBe(sha256(big));
    expect(readdirSync(join(back, 'below'))).toEqual(['ünï cödé']);
  });
});

describe('an editor', () => {
  it('uses one connection for commands, files and forwarded ports at once', async () => {
    const { first: forwarded } = await freePorts(1);
    const socket = join(host.home, 'master');
    const master = host.spawnSsh(pod, [
      ...['-M', '-S', socket, '-N'],
      ...['-L', `${forwarded}:localhost:8000`],
    ]);
    const shared = ['-o', `ControlPath=${socket}`, ...host.options(host.portOf(pod))];
    const to = 'root@127.0.0.1';
    const ssh = (...args: string[]) => runClient('ssh', [...shared, ...args]);
    try {
      await eventually('the master', async () => (await ssh('-O', 'check', to)).code === 0);
      const data = randomBytes(BIG_BYTES);
      const [there, back] = [join(host.home, 'there'), join(host.home, 'back')];
      writeFileSync(there, data);
      const pages = async () => {
        const urls = Array.from({ length: 20 }, () => `http://127.0.0.1:${forwarded}/`);
        const answers = await Promise.all(urls.map(async (url) => (await fetch(url)).text()));
        return answers.filter((page) => page.includes('This pod is running.')).length;
      };
      const commands = Array.from({ length: 6 }, (_, n) => ssh(to, `sleep 1; echo ${n}`));
      const copy = runClient('scp', [...shared, '-q', there, `${to}:/tmp/there`]);
      const list = runClient('sftp', [...shared, '-b', '-', to], 'ls /www\n');
      expect(await pages()).toBe(20);
      const said = (await Promise.all(commands)).map(({ stdout }) => stdout.toString());
      expect(said).toEqual(Array.from({ length: 6 }, (_, n) => `${n}\n`));
      expect((await list).stdout.toString()).toContain('/www/index.html');
      expect((await copy).code).toBe(0);
      expect((await runClient('scp', [...shared, '-q', `${to}:/tmp/there`, back])).code).toBe(0);
      expect(sha256(readFileSync(back))).toBe(sha256(data));
      expect((await ssh('-O', 'check', to)).code).toBe(0);
    } finally {
      master.kill();
    }
  });

  it('can run ten programs on one connection; an eleventh is rejected and the ten keep running', async () => {
    const socket = join(host.home, 'control');
    const master = host.spawnSsh(pod, ['-M', '-S', socket, '-N']);
    const shared = ['-o', `ControlPath=${socket}`, ...host.options(host.portOf(pod))];
    const ssh = (...args: string[]) => runClient('ssh', [...shared, ...args]);
    try {
      await eventually('the master', async () => (await ssh('-O', 'check', 'x')).code === 0);
      const program = 'echo >>/tmp/started; until [ -e /tmp/go ]; do sleep 1; done; echo done';
      const ten = Array.from({ length: 10 }, () => ssh('x@127.0.0.1', program));
      await eventually('all ten', async () => {
        const { stdout } = await host.ssh(pod, ['wc -l </tmp/started']);
        return Number(stdout.toString()) === 10;
      });
      const eleventh = await runClient('ssh', [
        ...['-o', `ControlPath=${socket}`, '-o', 'ControlMaster=no', '-o', 'ProxyCommand=false'],
        ...[...host.options(host.portOf(pod)), 'x@127.0.0.1', 'echo in'],
      ]);
      expect(eleventh.stdout.toString()).toBe('');
      await host.ssh(pod, ['touch /tmp/go']);
      const ends = (await Promise.all(ten)).map(({ stdout }) => stdout.toString());
      expect(ends).toEqual(Array.from({ length: 10 }, () => 'done\n'));
    } finally {
      master.kill();
    }
  });
});
