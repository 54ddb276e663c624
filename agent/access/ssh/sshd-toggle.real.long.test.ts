import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { type SshHost, startSshHost } from '../../../test/fakes/agents/ssh-host.ts';
import { podSpec } from '../../../test/fakes/agents/test-agent.ts';

let host: SshHost;
beforeAll(async () => {
  host = await startSshHost();
});
afterAll(() => host.stop());

/** Changes a pod in place and waits until the change has succeeded. */
async function change(pod: PodView, generation: number, own: boolean): Promise<PodView> {
  await host.client().putPod(pod.id, {
    ...podSpec({ internal_ports: [22, 8000], ssh_public_keys: [host.key.publicKey] }),
    generation,
    publish_own_sshd: own,
    // Sends a banner on every connection, like an SSH server.
    command: own ? ['sh', '-c', 'while true; do echo SSH-2.0-own | nc -l -p 22; done'] : [],
  });
  return host.readyPod(pod.id, ({ phase, observed_generation, change: left, ...view }) => {
    if (left?.stage === 'failed') throw new Error(left.message);
    const isThere = phase === 'running' && observed_generation === generation && left === null;
    return isThere && (own || view.ssh?.ready === true);
  });
}

it('a pod keeps its ports when an edit switches its own SSH server on and off', async () => {
  const first = await host.launch();
  const own = await change(first, 2, true);
  expect([own.ports, own.ssh]).toEqual([first.ports, null]);
  const again = await change(own, 3, false);
  expect(again.ports).toEqual(first.ports);
  expect((await host.ssh(again, ['echo in'])).stdout.toString()).toBe('in\n');
});
