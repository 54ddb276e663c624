import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { publicKeyOf } from '#shared/signing/openssh-key.ts';
import { runClient, type SshHost, startSshHost } from '../../test/fakes/agents/ssh-host.ts';
import { longSession } from '../../test/fakes/agents/ssh-session.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import {
  createSecurityKey,
  startSecurityKeyAgent,
} from '../../test/fakes/external/security-key.ts';
import { GatewayStatus, gatewayPaths, readJsonFile } from '../access/ssh/gateway-files.ts';
import { LOGIN_LIMITS } from './pending-logins.ts';

let host: SshHost;
let pod: PodView;

beforeAll(async () => {
  host = await startSshHost();
  pod = await host.launch();
});
afterAll(() => host.stop());

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
});

describe('keys', () => {
  it('take effect at once: a new key is accepted, the sessions of a removed key end', async () => {
    const second = host.newKey('second');
    const session = await longSession(host, pod);
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
    const session = await longSession(host, short);
    await host.client().deletePod(short.id);
    expect(await session.closed).not.toBe(0);
    await eventually('a closed port', async () => {
      const { stderr } = await host.ssh(short, ['true']);
      return stderr.includes('refused');
    });
  });
});

describe('a pod', () => {
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
