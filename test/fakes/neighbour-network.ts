/** A network namespace that a veth pair connects to the host. Tests use it as other machines on the network. */
import { type ChildProcess, spawn } from 'node:child_process';
import { systemRandom } from '#shared/runtime/random.ts';
import { command, getScript, mustRun } from './agents/real-host.ts';

export type Neighbour = Awaited<ReturnType<typeof createNeighbour>>;

/** Creates one machine with a public, a private and a link-local address. It answers HTTP on each of `ports`. */
export async function createNeighbour(ports: readonly number[]) {
  const tag = systemRandom.uuid().slice(0, 8);
  const [byte, quad] = [systemRandom.int(168) + 1, 4 * systemRandom.int(63)];
  const name = `podtest-${tag}`;
  const [outer, inner] = [`vt${tag}o`, `vt${tag}i`];
  const addresses = {
    /** From a range reserved for documentation (RFC 5737), which no host has. */
    public: `198.51.100.${quad + 2}`,
    private: `10.206.${byte}.${quad + 2}`,
    linkLocal: `169.254.${byte}.${quad + 2}`,
  };
  const hostAddress = `198.51.100.${quad + 1}`;
  const inside = (...args: string[]) => ['netns', 'exec', name, ...args];
  const servers: ChildProcess[] = [];

  async function close(): Promise<void> {
    for (const server of servers) server.kill('SIGKILL');
    await command('ip', 'link', 'del', outer);
    await command('ip', 'netns', 'del', name);
  }

  try {
    await mustRun('ip', 'netns', 'add', name);
    await mustRun('ip', 'link', 'add', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', name);
    await mustRun('ip', ...inside('ip', 'link', 'set', inner, 'up'));
    await mustRun('ip', 'link', 'set', outer, 'up');
    for (const address of Object.values(addresses)) {
      const gateway = address.replace(/\d+$/, String(quad + 1));
      await mustRun('ip', 'addr', 'add', `${gateway}/30`, 'dev', outer);
      await mustRun('ip', ...inside('ip', 'addr', 'add', `${address}/30`, 'dev', inner));
    }
    await mustRun('ip', ...inside('ip', 'route', 'add', 'default', 'via', hostAddress));
    for (const port of ports) {
      const httpd = inside('/bin/busybox', 'httpd', '-f', '-p', String(port), '-h', '/etc');
      servers.push(spawn('ip', httpd, { stdio: 'ignore' }));
    }
  } catch (error) {
    await close();
    throw error;
  }

  return {
    addresses,
    /** This host's address in the neighbour's network. */
    hostAddress,
    /**
     * Sends a GET request for `url` from the neighbour, and returns the whole HTTP response; empty without a
     * response.
     */
    async fetch(url: string): Promise<string> {
      return (await command('ip', ...inside('sh', '-c', getScript(url)))).stdout;
    },
    close,
  };
}
