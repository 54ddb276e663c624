import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { publicKeyOf } from '#shared/signing/openssh-key.ts';
import { runClient, type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import {
  createSecurityKey,
  startSecurityKeyAgent,
} from '../../test/fakes/external/security-key.ts';
import { GatewayStatus, gatewayPaths, readJsonFile } from '../access/ssh/gateway-files.ts';
import { BOUNDS } from './limits.ts';
import { LOGIN_LIMITS } from './pending-logins.ts';

let host: SshHost;
let pod: PodView;

beforeAll(async () => {
  host = await startSshHost();
  pod = await host.launch();
});
afterAll(() => host.stop());

/** Opens a session that lasts until it is cut; resolves once it is established. */
async function longSession(view = pod, key = host.key) {
  const child = host.spawnSsh(view, ['echo up; cat'], key);
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('close', (code) => reject(new Error(`the session ended with ${code}`)));
  });
  return { child, closed };
}

async function echoes(session: Awaited<ReturnType<typeof longSession>>, word: string) {
  const heard = new Promise<string>((resolve) =>
    session.child.stdout.once('data', (data: Buffer) => resolve(data.toString())),
  );
  session.child.stdin.write(`${word}\n`);
  return heard;
}

describe('a login', () => {
  it('accepts the keys of the pod, and rejects other keys and passwords', async () => {
    expect((await host.ssh(pod, ['echo in'])).stdout.toString()).toBe('in\n');
    const wrong = await host.ssh(pod, ['echo in'], '', host.newKey('stranger'));
    expect(wrong).toMatchObject({ code: 255, stdout: Buffer.alloc(0) });
    expect(wrong.stderr).toContain('Permission denied (publickey)');
    const password = ['-o', 'PreferredAuthentications=password,keyboard-interactive'];
    const args = [...host.options(host.portOf(pod)), ...password, 'root@127.0.0.1', 'echo in'];
    expect((await runClient('ssh', args)).stderr).toContain('Permission denied (publickey)');
    const { status } = gatewayPaths(join(host.home, 'agent'));
    await eventually('the traffic counters', () => {
      const {
        sessions = 1,
        sessions_total: all = 0,
        login_failures_total: failures = 0,
      } = readJsonFile(status, GatewayStatus)?.traffic ?? {};
      return sessions === 0 && all >= 1 && failures >= 1;
    });
  });

  it('presents the host key that the agent reports, the same for all pods', async () => {
    const known = join(host.home, 'strict_known_hosts');
    writeFileSync(known, `[127.0.0.1]:${host.portOf(pod)} ${pod.ssh?.host_key}\n`);
    const strict = ['-o', 'StrictHostKeyChecking=yes', '-o', `UserKnownHostsFile=${known}`];
    const args = [...strict, ...host.options(host.portOf(pod)), 'root@127.0.0.1', 'echo in'];
    expect((await runClient('ssh', args)).stdout.toString()).toBe('in\n');
    writeFileSync(known, `[127.0.0.1]:${host.portOf(pod)} ssh-ed25519 ${'A'.repeat(68)}\n`);
    expect((await runClient('ssh', args)).code).toBe(255);
    const saved = readFileSync(gatewayPaths(join(host.home, 'agent')).hostKey, 'utf8');
    expect(publicKeyOf(saved)).toBe(pod.ssh?.host_key);
  });

  it('causes no SSH host key warning at a port that another pod had, even after the agent’s home was deleted', async () => {
    const other = await startSshHost();
    try {
      const first = await other.launch();
      const known = join(other.home, 'first_known_hosts');
      writeFileSync(known, `[127.0.0.1]:${other.portOf(first)} ${first.ssh?.host_key}\n`);
      await other.reinstall();
      const next = await other.launch();
      expect([next.id === first.id, other.portOf(next)]).toEqual([false, other.portOf(first)]);
      const strict = ['-o', 'StrictHostKeyChecking=yes', '-o', `UserKnownHostsFile=${known}`];
      const args = [...strict, ...other.options(other.portOf(next)), 'root@127.0.0.1', 'echo in'];
      expect(await runClient('ssh', args)).toMatchObject({ code: 0, stderr: '' });
    } finally {
      await other.stop();
    }
  });

  it.each(['sk-ssh-ed25519@openssh.com', 'sk-ecdsa-sha2-nistp256@openssh.com'] as const)(
    'accepts a security key (%s) only if the user touches it',
    async (type) => {
      const others = [host.key.publicKey];
      const enters = async (touched: boolean) => {
        const device = createSecurityKey(type, touched);
        await host.client().putSshKeys(pod.id, [...others, device.line]);
        const [path, file] = [join(host.home, 'agent.sock'), join(host.home, 'id_token.pub')];
        writeFileSync(file, device.line);
        const agent = await startSecurityKeyAgent(path, device);
        const options = host.options(host.portOf(pod), { file, publicKey: device.line });
        const args = ['-o', `IdentityAgent=${path}`, ...options, 'root@127.0.0.1', 'echo in'];
        const ran = await runClient('ssh', args);
        agent.close();
        return ran.stdout.toString();
      };
      expect(await enters(true)).toBe('in\n');
      expect(await enters(false)).toBe('');
      await host.client().putSshKeys(pod.id, others);
    },
  );

  it('with invalid data does not affect other logins', async () => {
    for (const rubbish of ['', 'GET / HTTP/1.1\r\n\r\n', `SSH-2.0-x\r\n${'\xff'.repeat(400)}`]) {
      const socket = connect(host.portOf(pod), '127.0.0.1');
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.write(rubbish || '\n', resolve));
      socket.resetAndDestroy();
    }
    expect((await host.ssh(pod, ['echo in'])).stdout.toString()).toBe('in\n');
  });

  it('succeeds although connections without a login fill all slots of its source', async () => {
    const flood = Array.from({ length: 3 * LOGIN_LIMITS.perSource }, () =>
      connect(host.portOf(pod), '127.0.0.1'),
    );
    for (const socket of flood) socket.on('error', () => undefined);
    try {
      await Promise.all(flood.map((socket) => socket.connecting && once(socket, 'connect')));
      expect((await host.ssh(pod, ['echo in'])).stdout.toString()).toBe('in\n');
    } finally {
      for (const socket of flood) socket.destroy();
    }
  });

  it(`is limited to ${BOUNDS.sessionsPerPod} sessions per pod, independently of other pods`, async () => {
    const other = await host.launch();
    const pods = [pod, other].flatMap((view) =>
      Array.from({ length: BOUNDS.sessionsPerPod }, () => view),
    );
    const sessions = await Promise.all(pods.map((view) => longSession(view)));
    expect((await host.ssh(pod, ['true'])).code).toBe(255);
    const answers = await Promise.all(sessions.map((one, index) => echoes(one, `word ${index}`)));
    expect(answers).toEqual(sessions.map((_, index) => `word ${index}\n`));
    for (const { child } of sessions) child.kill();
    await Promise.all(sessions.map(({ closed }) => closed));
    await eventually('a free slot', async () => (await host.ssh(pod, ['true'])).code === 0);
    await host.client().deletePod(other.id);
  });
});

describe('keys', () => {
  it('take effect at once: a new key is accepted, the sessions of a removed key end', async () => {
    const second = host.newKey('second');
    const session = await longSession();
    const changed = await host.client().putSshKeys(pod.id, [second.publicKey]);
    expect(await session.closed).toBe(255);
    expect((await host.ssh(pod, ['true'])).code).toBe(255);
    expect((await host.ssh(pod, ['true'], '', second)).code).toBe(0);
    expect(changed.ssh_keys_hash).not.toBe(pod.ssh_keys_hash);
    expect(changed.container_id).toBe(pod.container_id);

    const back = await host.client().putSshKeys(pod.id, [host.key.publicKey]);
    expect(back.ssh_keys_hash).toBe(pod.ssh_keys_hash);
    await eventually('the first key', async () => (await host.ssh(pod, ['true'])).code === 0);
  });
});

describe('sessions', () => {
  it('continue while the agent restarts, which then finds its pods unchanged', async () => {
    const session = await longSession();
    await host.killAgent();
    expect(await echoes(session, 'alone')).toBe('alone\n');
    expect((await host.ssh(pod, ['echo new'])).stdout.toString()).toBe('new\n');
    await host.startAgentAgain();
    const again = await host.readyPod(pod.id);
    expect(again.ssh).toEqual(pod.ssh);
    expect(await echoes(session, 'together')).toBe('together\n');
    session.child.kill();
    await session.closed;
  });

  it('are possible again after a killed gateway has restarted', async () => {
    const session = await longSession();
    await host.restartGateway();
    expect(await session.closed).toBe(255);
    await eventually('a login', async () => (await host.ssh(pod, ['true'])).code === 0);
    expect((await host.readyPod(pod.id)).ssh).toEqual(pod.ssh);
  });

  it('end with a killed gateway, but detached processes keep running', async () => {
    const marks = 'echo $$ >/tmp/shell; setsid sleep 777 & echo $! >/tmp/detached';
    const child = host.spawnSsh(pod, [`${marks}; echo up; exec sleep 888`]);
    await new Promise((resolve) => child.stdout.once('data', resolve));
    const lives = async (file: string) =>
      (await host.ssh(pod, [`kill -0 $(cat /tmp/${file})`])).code === 0;
    expect(await lives('shell')).toBe(true);
    await host.restartGateway();
    await eventually('a login', async () => (await host.ssh(pod, ['true'])).code === 0);
    await eventually('the end of the session', async () => !(await lives('shell')));
    expect(await lives('detached')).toBe(true);
  });

  it('forward signals', async () => {
    const client = new ssh2.Client();
    await new Promise<void>((resolve, reject) => {
      client.once('ready', resolve);
      client.once('error', reject);
      const privateKey = readFileSync(host.key.file);
      client.connect({ host: '127.0.0.1', port: host.portOf(pod), username: 'x', privateKey });
    });
    const exit = await new Promise((resolve, reject) =>
      client.exec("trap 'exit 42' USR1; echo up; while :; do sleep 0.1; done", (error, channel) => {
        if (error !== undefined) return reject(error);
        channel.once('data', () => channel.signal('USR1'));
        channel.once('exit', resolve);
      }),
    );
    client.end();
    expect(exit).toBe(42);
  });

  it('end with their pod, whose port is closed', async () => {
    const short = await host.launch();
    const session = await longSession(short);
    await host.client().deletePod(short.id);
    expect(await session.closed).not.toBe(0);
    await eventually('a closed port', async () => {
      const { stderr } = await host.ssh(short, ['true']);
      return stderr.includes('refused');
    });
  });
});

describe('a pod', () => {
  it('retains port and host key over a reboot and a new generation', async () => {
    await host.client().rebootPod(pod.id, 1);
    const rebooted = await host.readyPod(
      pod.id,
      (view) => view.reboots_done === 1 && view.ssh?.ready === true,
    );
    expect(rebooted.ssh).toEqual(pod.ssh);
    expect((await host.ssh(pod, ['true'])).code).toBe(0);
  });

  it('that brings its own server is not served by the gateway', async () => {
    const own = await host.launch({
      publish_own_sshd: true,
      command: ['sh', '-c', 'while :; do echo SSH-2.0-own | nc -l -p 22; done'],
    });
    expect(own.ssh).toBeNull();
    const banner = await eventually('its banner', () => bannerOf(own.ports['22'] ?? 0));
    expect(banner).toContain('SSH-2.0-own');
  });
});

function bannerOf(port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', (data) => {
      resolve(data.toString());
      socket.destroy();
    });
    socket.once('error', () => resolve(null));
    socket.once('close', () => resolve(null));
  });
}
