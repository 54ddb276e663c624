/** dockerode clients. The package is loaded without the dependencies that the agent never uses. */
import { inspect } from 'node:util';
import type Docker from 'dockerode';
import { Agent } from '#shared/http/node-http.ts';
import { importWithout } from '../../import-without.ts';

export type { Docker };

/**
 * Dependencies of dockerode that are not loaded. BuildKit sessions and ssh:// hosts would cost an idle agent 19 MB of
 * memory, builds from a folder 1 MB; the agent sends its builds as tar archives.
 */
const UNUSED = new Set([
  '@grpc/grpc-js',
  '@grpc/proto-loader',
  'ssh2',
  'tar-fs',
  '@balena/dockerignore',
]);

const { default: Dockerode } = await importWithout(UNUSED, () => import('dockerode'));

/**
 * Connections to the engine. dockerode's HTTP client formats the options of each request for a debug message, also if
 * debugging is off, and with them the agent and all its connections. With a hundred pods, that would block the event
 * loop for seconds.
 */
class EngineConnections extends Agent {
  [inspect.custom](): string {
    return 'EngineConnections';
  }
}

/** Returns a client of the engine behind a Unix socket. It connects on the first call. */
export function createDockerClient(socketPath: string): Docker {
  // In a variable: dockerode's types lack `agent`, so a literal in the call would not compile.
  const connection = {
    socketPath,
    // Without `host`, a DOCKER_HOST in the environment would take precedence over the socket.
    host: undefined,
    // A new connection costs more than most calls.
    agent: new EngineConnections({ keepAlive: true }),
  };
  return new Dockerode(connection);
}
