import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { type SshHost, startSshHost } from '../../../test/fakes/agents/ssh-host.ts';
import { copyPrograms } from '../../../test/fakes/engine/host-programs.ts';
import { eventually } from '../../../test/fakes/eventually.ts';

/**
 * Command of a template with its own SSH server, which reads keys from the file that PODWRIGHT_AUTHORIZED_KEYS names.
 */
const SERVER = `until [ -e /go ]; do sleep 0.1; done
mkdir -p /etc/dropbear /root/.ssh
ln -sf "$PODWRIGHT_AUTHORIZED_KEYS" /root/.ssh/authorized_keys
exec dropbear -F -E -R -s -p 22`;

let host: SshHost;
let pod: PodView;

beforeAll(async () => {
  host = await startSshHost();
  pod = await host.launch({ publish_own_sshd: true, command: ['sh', '-c', SERVER] });
});
afterAll(() => host.stop());

const port = () => pod.ports['22'] ?? 0;
const view = () => host.client().getPod(pod.id);

function loginOf({ conditions }: PodView) {
  const { status, reason } = conditions.find(({ type }) => type === 'SshReady') ?? {};
  return { status, reason };
}

describe('a pod that brings its own SSH server', () => {
  it('is ready once its server sends a banner, not when its port accepts connections', async () => {
    expect(loginOf(pod)).toEqual({ status: false, reason: 'NotYet' });
    await copyPrograms(pod.container_id ?? '', 'dropbear');
    // Docker's proxy accepts connections even if no program in the container listens.
    expect(loginOf(await view())).toEqual({ status: false, reason: 'NotYet' });
    await mustRun('docker', 'exec', pod.container_id ?? '', 'touch', '/go');
    const ready = await eventually('its banner', async () => {
      const seen = await view();
      return loginOf(seen).status === true && seen;
    });
    expect(ready.ssh).toBeNull();
  });

  it('accepts only the keys of its renter', async () => {
    expect((await host.sshTo(port(), ['echo in'])).stdout.toString()).toBe('in\n');
    const stranger = await host.sshTo(port(), ['echo in'], host.newKey('stranger'));
    expect(stranger.code).toBe(255);
  });

  it('receives changed keys at once, and cannot change the keys itself', async () => {
    const second = host.newKey('second');
    await host.client().putSshKeys(pod.id, [second.publicKey]);
    expect((await host.sshTo(port(), ['true'])).code).toBe(255);
    expect((await host.sshTo(port(), ['true'], second)).code).toBe(0);
    const write = 'echo >>"$PODWRIGHT_AUTHORIZED_KEYS" || echo kept';
    const inside = await mustRun('docker', 'exec', pod.container_id ?? '', 'sh', '-c', write);
    expect(inside).toBe('kept\n');
    await host.client().putSshKeys(pod.id, [host.key.publicKey]);
    expect((await host.sshTo(port(), ['true'])).code).toBe(0);
  });

  it('is not ready while it reboots, and retains its keys', async () => {
    await mustRun('docker', 'exec', pod.container_id ?? '', 'rm', '/go');
    await host.client().rebootPod(pod.id, 1);
    await host.readyPod(pod.id, (seen) => seen.reboots_done === 1 && seen.phase === 'running');
    expect(loginOf(await view()).status).toBe(false);
    await mustRun('docker', 'exec', pod.container_id ?? '', 'touch', '/go');
    await eventually('its banner', async () => loginOf(await view()).status === true);
    expect((await host.sshTo(port(), ['true'])).code).toBe(0);
  });

  it('keeps running while the agent restarts, and the agent then finds it unchanged', async () => {
    await host.killAgent();
    expect((await host.sshTo(port(), ['true'])).code).toBe(0);
    await host.startAgentAgain();
    await eventually('its banner', async () => loginOf(await view()).status === true);
    const third = host.newKey('third');
    await host.client().putSshKeys(pod.id, [third.publicKey]);
    expect((await host.sshTo(port(), ['true'], third)).code).toBe(0);
  });
});
