import { afterEach, beforeEach, expect, it } from 'vitest';
import { PodSpec, sshKeysHash } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { sshFingerprint } from '#shared/signing/openssh-key.ts';
import { createTestAgent, NO_GATEWAY, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import type { GatewayPodStatus, GatewaySnapshot } from '../access/ssh/gateway-files.ts';
import { RELEASE_TIMEOUT_MS } from '../access/ssh/ssh.service.ts';
import type { Agent } from '../app.ts';

const ID = systemRandom.uuid();
const SPEC = PodSpec.parse(podSpec({ internal_ports: [22], ssh_public_keys: ['ssh-ed25519 one'] }));

let agent: Agent;
let told: GatewaySnapshot;
let status: GatewayPodStatus | null;
let clock: ManualClock;
let wallOffsetMs: number;

beforeEach(() => {
  status = null;
  told = { pods: [] };
  const manual = createManualClock();
  wallOffsetMs = 0;
  clock = { ...manual, now: () => manual.now() + wallOffsetMs };
  const gatewayLink = {
    ...NO_GATEWAY,
    publish: (snapshot: GatewaySnapshot) => {
      told = snapshot;
    },
    statusOf: () => status,
  };
  agent = createTestAgent({
    engine: createFakeEngine(clock),
    clock,
    gatewayLink,
    // The port is in use as long as the gateway reports a status.
    probePort: async () => status === null,
  });
});
afterEach(() => agent.stop());

const keysTold = () => told.pods[0]?.authorized_keys;

it('publishes a pod to the gateway from its admission to its removal', async () => {
  const view = await agent.pods.put(ID, SPEC);
  await Promise.resolve();
  expect(told.pods).toMatchObject([{ id: ID, port: view.ssh?.port, user: 'root' }]);
  expect(view.ssh).toMatchObject({ ready: false, port: view.ports['22'] });
  expect(view.ssh?.host_key_fingerprint).toBe(sshFingerprint(view.ssh?.host_key ?? ''));
  const other = await agent.pods.put(systemRandom.uuid(), SPEC);
  expect(other.ssh?.host_key).toBe(view.ssh?.host_key);
  agent.pods.remove(other.id);
  agent.pods.remove(ID);
  await Promise.resolve();
  expect(told.pods).toEqual([]);
});

it('keeps replaced keys for a repeated spec, and drops them for a newer spec', async () => {
  await agent.pods.put(ID, SPEC);
  const changed = agent.pods.putSshKeys(ID, ['ssh-ed25519 two']);
  expect(changed.ssh_keys_hash).toBe(sshKeysHash(['ssh-ed25519 two']));
  expect(keysTold()).toEqual(['ssh-ed25519 two']);
  expect((await agent.pods.put(ID, SPEC)).ssh_keys_hash).toBe(changed.ssh_keys_hash);

  const next = await agent.pods.put(ID, {
    ...SPEC,
    generation: 2,
    ssh_public_keys: ['ssh-ed25519 three'],
  });
  expect(next.ssh_keys_hash).toBe(sshKeysHash(['ssh-ed25519 three']));
  await Promise.resolve();
  expect(keysTold()).toEqual(['ssh-ed25519 three']);
});

it('leases another port if the gateway could not listen on the leased port', async () => {
  const { ssh } = await agent.pods.put(ID, SPEC);
  const port = ssh?.port ?? 0;
  status = {
    port,
    container_id: null,
    ready: false,
    message: 'taken',
    since_ms: 0,
    port_taken: true,
  };
  agent.core.ssh.exchangeTakenPorts();
  const moved = agent.pods.get(ID).ssh?.port;
  expect(moved).not.toBe(port);
  expect(told.pods[0]?.port).toBe(moved);
});

it('does not publish a pod with its own SSH server', async () => {
  const view = await agent.pods.put(ID, { ...SPEC, publish_own_sshd: true });
  await Promise.resolve();
  expect(view.ssh).toBeNull();
  expect(view.conditions.find(({ type }) => type === 'SshReady')).toMatchObject({ status: false });
  expect(told.pods).toEqual([]);
});

it('waits until the gateway closes a port that the pod’s own server needs', async () => {
  const { ports } = await agent.pods.put(ID, { ...SPEC, publish_own_sshd: true });
  const port = ports['22'] ?? 0;
  status = {
    port,
    container_id: null,
    ready: false,
    message: '',
    since_ms: 0,
    port_taken: false,
  };
  agent.start();
  await clock.advance(1_000);
  // A change of the wall clock has no effect.
  wallOffsetMs = -3_600_000;
  await clock.advance(RELEASE_TIMEOUT_MS);
  const waiting = { phase: 'backoff', reason: 'PortConflict', ports };
  await eventually('the wait', async () => {
    await clock.advance(100);
    return agent.pods.get(ID).phase === 'backoff';
  });
  expect(agent.pods.get(ID)).toMatchObject(waiting);
  wallOffsetMs = 0;
  status = null;
  await eventually('the start', async () => {
    await clock.advance(100);
    return agent.pods.get(ID).phase === 'running';
  });
  expect(agent.pods.get(ID).ports).toEqual(ports);
});
