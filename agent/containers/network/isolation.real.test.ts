/** Connections from and to pods on the real engine with real rules. Needs root. */
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { createRealHost, mustRun, type RealHost } from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { createNeighbour, type Neighbour } from '../../../test/fakes/neighbour-network.ts';

const HTTP = 8000;
const DNS = 53;
const SMTP = 25;
/** Path of the file that the neighbour serves. */
const PATH = 'hostname';
const PAGE = 'This pod is running.';

let neighbour: Neighbour;
let host: RealHost;
let pod: PodView;
let other: PodView;

beforeAll(async () => {
  neighbour = await createNeighbour([HTTP, DNS, SMTP]);
  host = await createRealHost([neighbour.addresses.private]);
  [pod, other] = await Promise.all([host.launch(), host.launch()]);
  await eventually('the pages of both pods', async () => {
    const pages = await Promise.all(
      [pod, other].map((one) => page(publishedUrl(one, '127.0.0.1'))),
    );
    return pages.every((text) => text.includes(PAGE));
  });
});

afterAll(async () => {
  await host?.close();
  await neighbour?.close();
});

const publishedUrl = (view: PodView, address: string) =>
  `http://${address}:${view.ports[String(HTTP)]}/`;

async function page(url: string): Promise<string> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(3_000) }).catch(() => null);
  return answer === null ? '' : answer.text();
}

/** Returns this host's IPv4 addresses: its interfaces, the engine's bridges, the pods' gateways. */
function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
  return all.filter(({ family, internal }) => family === 'IPv4' && !internal).map((a) => a.address);
}

/** Returns those of `urls` from which the pod gets a response. */
async function reachedOf(urls: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(urls.map((url) => host.reaches(pod, url)));
  return urls.filter((_, index) => answers[index]);
}

it('blocks connections from pods to this host on every address', async () => {
  const urls = ownAddresses().map((address) => `http://${address}:${host.agentPort}/healthz`);
  expect(urls.length).toBeGreaterThan(3);
  for (const url of urls) {
    const text = await page(url);
    const isGone = !ownAddresses().includes(new URL(url).hostname);
    expect([url, isGone || text.includes('ok')]).toEqual([url, true]);
  }
  expect(await reachedOf(urls)).toEqual([]);
});

it('isolates pods from each other, by address and by published port', async () => {
  const direct = `http://${await host.addressOf(other)}:${HTTP}/`;
  expect(await page(direct)).toContain(PAGE);
  const published = ownAddresses().map((address) => publishedUrl(other, address));
  expect(await reachedOf([direct, ...published])).toEqual([]);
});

it('lets pods reach public addresses, but no private and link-local ones and no mail servers', async () => {
  const { addresses } = neighbour;
  const url = (address: string, port = HTTP) => `http://${address}:${port}/${PATH}`;
  for (const address of Object.values(addresses)) {
    await eventually(`the neighbour at ${address}`, () => page(url(address)));
  }
  const tried = [
    url(addresses.public),
    url(addresses.private),
    url(addresses.linkLocal),
    url(addresses.public, SMTP),
    // The host's resolver may have a private address; pods may reach only its DNS port.
    url(addresses.private, DNS),
  ];
  expect(await reachedOf(tried)).toEqual([url(addresses.public), url(addresses.private, DNS)]);
});

it('gives pods no IPv6', async () => {
  const lines = await mustRun('docker', 'exec', pod.container_id ?? '', 'ip', '-6', 'addr');
  expect(lines).not.toContain('inet6');
});

it('leaves published ports open, from the host and from outside', async () => {
  for (const address of ['127.0.0.1', ...ownAddresses()]) {
    const text = await page(publishedUrl(pod, address));
    // Bridges of other agents' pods appear and vanish during the test.
    const isGone = address !== '127.0.0.1' && !ownAddresses().includes(address);
    expect([address, isGone || text.includes(PAGE)]).toEqual([address, true]);
  }
  expect(await neighbour.fetch(publishedUrl(pod, neighbour.hostAddress))).toContain(PAGE);
});

it('resolves names for pods through the engine', async () => {
  const inside = ['exec', pod.container_id ?? '', 'cat', '/etc/resolv.conf'];
  expect(await mustRun('docker', ...inside)).toContain('nameserver 127.0.0.11');
  const { addresses } = neighbour;
  expect(await reachedOf([`http://${addresses.private}:${DNS}/${PATH}`])).toHaveLength(1);
});

it('restores rules that were flushed, and counts them', async () => {
  const { names, agent } = host;
  const [address = ''] = ownAddresses();
  const url = `http://${address}:${host.agentPort}/healthz`;
  const driftBefore = await driftOf();
  // Without the rules the pod's connection succeeds, unless the agent restores them first.
  await eventually('an unguarded moment', async () => {
    await mustRun('iptables', '-t', 'mangle', '-F', names.input);
    return host.reaches(pod, url);
  });
  const jump = ['INPUT', '-i', `${names.bridges}+`, '-j', names.input];
  await mustRun('iptables', '-t', 'mangle', '-D', ...jump);
  // The first may join a check that began before the rule was removed.
  await agent.core.firewall.runOnce();
  await agent.core.firewall.runOnce();
  expect(await reachedOf([url])).toEqual([]);
  expect(await driftOf()).toBeGreaterThanOrEqual(driftBefore + 2);
  const ready = await agent.server.inject('/readyz');
  expect(ready.json().components.firewall).toEqual({ ok: true, message: 'enforced' });
});

it('two agents share the rules without reporting drift', async () => {
  const [one, two] = [host.newFirewall(), host.newFirewall()];
  const first = await Promise.all([one.assert(), two.assert()]);
  const again = [await two.assert(), await one.assert(), await two.assert()];
  expect([...first, ...again].map(({ drift }) => drift)).toEqual([0, 0, 0, 0, 0]);
});

it('gives the bridge a name that the rules match, and releases the subnet with the pod', async () => {
  const { leases } = host.agent.core;
  const bridge = `${host.names.bridges}${other.id.replaceAll('-', '').slice(0, 12)}`;
  expect(Object.keys(networkInterfaces())).toContain(bridge);
  expect(leases.heldBy('subnet', other.id)).toHaveLength(1);
  await host.remove(other.id);
  await eventually('the removal', async () => (await host.view(other.id)).phase === 'removed');
  expect(leases.heldBy('subnet', other.id)).toEqual([]);
});

async function driftOf(): Promise<number> {
  const { body } = await host.agent.server.inject('/metrics');
  return Number(/^podwright_agent_firewall_drift_total (\d+)$/m.exec(body)?.[1]);
}
