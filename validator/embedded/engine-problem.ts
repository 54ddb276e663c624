/** Checks before anything is started that the agents will reach the Docker engine. */
import { request } from 'node:http';
import type { Clock } from '#shared/runtime/clock.ts';
import { ConfigError, type Environment } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';

const DEFAULT_SOCKET = '/var/run/docker.sock';
const UNIX = 'unix://';
const PREREQUISITES = 'sudo sh systemd/prerequisites.sh';
/** A healthy engine responds to a ping within milliseconds. */
const PING_TIMEOUT_MS = 4_000;

/** Rejects with the remedy if the engine does not respond, at the latest after four seconds. */
export async function requireEngine(
  { DOCKER_HOST: host }: Environment,
  { clock, user }: { clock: Clock; user: string },
): Promise<void> {
  if (host && !host.startsWith(UNIX)) {
    throw new ConfigError(
      `DOCKER_HOST=${host} is not supported, because pods run on this machine: set it to unix:///path/of/the/socket, or unset it`,
    );
  }
  const socket = host ? host.slice(UNIX.length) : DEFAULT_SOCKET;
  const problem = await pingProblem(socket, clock.deadline(PING_TIMEOUT_MS));
  if (problem !== null) throw new Error(engineProblem(problem, { socket, user, isChosen: !!host }));
}

export type EnginePlace = {
  socket: string;
  user: string;
  /** True if DOCKER_HOST names the socket. */
  isChosen: boolean;
};

/** Returns the problem and its remedy. `cause` is the code or message of the failed ping. */
export function engineProblem(cause: string, { socket, user, isChosen }: EnginePlace): string {
  const other = isChosen ? ', or unset DOCKER_HOST to use the default engine' : '';
  if (/EACCES|EPERM/.test(cause)) {
    return `user ${user} may not use the Docker engine at ${socket}: run "sudo usermod -aG docker ${user}" and log in again${other}`;
  }
  if (/ENOENT|ECONNREFUSED/.test(cause)) {
    const start = isChosen
      ? 'start that engine'
      : `run "${PREREQUISITES}", which installs and starts one,`;
    const rootless = isChosen ? other : ' or set DOCKER_HOST to the socket of another engine';
    return `there is no Docker engine at ${socket}: ${start}${rootless}`;
  }
  return `the Docker engine at ${socket} does not respond (${cause}): restart it, for example with "sudo systemctl restart docker"${other}`;
}

/** Returns null if the engine responds. */
function pingProblem(socketPath: string, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    request({ socketPath, path: '/_ping', signal, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? null : `status ${response.statusCode}`);
    })
      .on('error', (error) =>
        resolve(signal.aborted ? `no answer in ${PING_TIMEOUT_MS / 1_000} s` : messageOf(error)),
      )
      .end();
  });
}
