/** The SSH gateway's configuration: SSH_* environment variables, parsed once and passed down as values. */
import { z } from 'zod';
import { type ConfigSpec, type Environment, parseConfig } from '#shared/runtime/config.ts';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
/** Variables that sshd and SSH clients set; allowed, because the gateway may be started from an SSH session. */
const SESSION_VARIABLES = new Set([
  'SSH_AUTH_SOCK',
  'SSH_AGENT_PID',
  'SSH_CLIENT',
  'SSH_CONNECTION',
  'SSH_TTY',
  'SSH_ASKPASS',
  'SSH_ASKPASS_REQUIRE',
  'SSH_ORIGINAL_COMMAND',
  'SSH_USER_AUTH',
]);

const Schema = z.object({
  SSH_SNAPSHOT: z
    .string()
    .startsWith('/', 'Not an absolute path')
    .default('/var/lib/podwright/ssh/gateway.json'),
  SSH_HOST: z.string().default('0.0.0.0'),
  SSH_DOCKER_SOCKET: z.string().default('/var/run/docker.sock'),
  SSH_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  SSH_UPDATE_TREE: z.string().startsWith('/', 'Not an absolute path').optional(),
  SSH_EXIT_WITH_PARENT: z.stringbool().default(false),
});

export type GatewayConfig = z.output<typeof Schema>;

export const SSH_CONFIG: ConfigSpec<typeof Schema.shape> = {
  schema: Schema,
  prefix: 'SSH_',
  foreign: SESSION_VARIABLES,
};

/** Throws ConfigError naming every problem at once. */
export function readConfig(environment: Environment): GatewayConfig {
  return parseConfig(SSH_CONFIG, environment);
}

/** Text of `--help` with all variables. */
export const CONFIG_HELP = `SSH_SNAPSHOT          the agent's file with its pods (/var/lib/podwright/ssh/gateway.json)
SSH_HOST              address to listen on, at each pod's own port (0.0.0.0)
SSH_DOCKER_SOCKET     the engine's socket (/var/run/docker.sock)
SSH_LOG_LEVEL         fatal, error, warn, info, debug, trace or silent (info)
SSH_UPDATE_TREE       folder of releases that the gateway runs from, set by its service (none)
SSH_EXIT_WITH_PARENT  end when the parent process ends (false)`;
