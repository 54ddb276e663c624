/** The agent of this checkout, installed by install.sh on a host with systemd and driven over HTTP. */
import { type AgentClient, createAgentClient } from '#shared/api/agent/agent-client.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { identityFrom, selfSignedPin } from '#shared/signing/identity.ts';
import { createSignedFetch, type SignedFetch } from '#shared/signing/signed-fetch.ts';
import { createSigner, type LocalSigner } from '#shared/signing/sr25519.ts';
import { createSecureTransport } from '#shared/tls/transport.ts';
import type { SystemdHost } from '../external/systemd-host.ts';
import { freePorts } from '../free-ports.ts';

const PORT = 8080;
const POD_PORTS = 20;
/**
 * Shell command that prevents the agent from mounting sftp-server into pods: the engine would look up the path on this
 * machine, where the agent's home does not exist.
 */
const WITHOUT_SFTP = `drop=/etc/systemd/system/podwright-agent.service.d && mkdir -p $drop &&
printf '[Service]\\nInaccessiblePaths=/usr/lib/openssh/sftp-server\\n' >$drop/test.conf`;

export type InstalledAgent = {
  executorId: string;
  signer: LocalSigner;
  client: AgentClient;
  send: SignedFetch;
};

/** Installs the agent with additional lines in its environment file. TLS is on, and it listens on all addresses. */
export async function installAgent(
  host: SystemdHost,
  variables: (signer: LocalSigner) => readonly string[] = () => [],
): Promise<InstalledAgent> {
  const executorId = systemRandom.uuid();
  const signer = createSigner(systemRandom.bytes(32));
  const { first, last } = await freePorts(POD_PORTS);
  const lines = [
    ...[`AGENT_EXECUTOR_ID=${executorId}`, 'AGENT_GPU=none', `AGENT_PORT_RANGE=${first}-${last}`],
    `AGENT_TRUSTED_KEYS=${signer.hotkey}=validator-control`,
    ...variables(signer),
  ];
  await host.mustRun(`${WITHOUT_SFTP} && mkdir -p /etc/podwright && umask 077 &&
    cat >/etc/podwright/agent.env <<'TEXT'
${lines.join('\n')}
TEXT`);
  await host.mustRun('sh /src/systemd/install.sh --component agent --probation 0');
  const seed = await host.mustRun('base64 -w0 /var/lib/podwright/identity.key');
  const { publicKey } = identityFrom(new Uint8Array(Buffer.from(seed, 'base64')));
  const trust = selfSignedPin(publicKey);
  if (trust === null) throw new Error('the agent has no key');
  const send = createSignedFetch({
    baseUrl: `https://${host.address}:${PORT}`,
    audience: executorId,
    signer,
    clock: systemClock,
    random: systemRandom,
    transport: createSecureTransport({ trust, clock: systemClock }),
  });
  return { executorId, signer, send, client: createAgentClient({ send, clock: systemClock }) };
}
