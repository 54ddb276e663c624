/** The agent's configuration for whoever starts it: read, or refused in words and with an exit status. */
import { CONFIG_REFUSED, ConfigError, type Environment, lookAtConfig } from '#shared/config.ts';
import { type ConfigCommand, problemsOf, runConfigCommand } from '#shared/config-command.ts';
import { messageOf } from '#shared/errors.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import { certificateFiles } from '#shared/tls/listener-certificate.ts';
import { wantsTracing } from '#shared/tracing/start-tracing.ts';
import { trustedKeysFrom } from './auth/key-set-file.ts';
import { AGENT_CONFIG, type AgentConfig, engineProblems, isSecure, readConfig } from './config.ts';
import {
  NO_POLICY,
  PolicyError,
  type ProviderPolicy,
  readPolicyFile,
} from './policy/policy-file.ts';
import { updateLoginOf } from './updates/update-login.ts';

export function configOrExit(environment: Environment): AgentConfig {
  return orExit(() => readConfig(environment));
}

export function trustedKeysOrExit(config: AgentConfig): readonly TrustedKey[] {
  return orExit(() => trustedKeysFrom(config.AGENT_TRUSTED_KEYS, config.AGENT_KEY_SET));
}

/** Before anything is opened: a listener's certificate that cannot be used ends the start. */
export function tlsFilesOrExit(config: AgentConfig): void {
  orExit(() => checkTlsFiles(config));
}

export function policyOrExit(path: string | undefined): ProviderPolicy {
  return orExit(() => (path === undefined ? NO_POLICY : readPolicyFile(path)));
}

export function tracingOrExit(environment: Environment): void {
  orExit(() => wantsTracing(environment));
}

/** `--check-config` and `--print-config`, with the files that the variables name. */
export function showConfiguration(command: ConfigCommand, environment: Environment): void {
  const look = lookAtConfig(AGENT_CONFIG, environment);
  const { config } = look;
  const ofFiles = config === null ? [] : furtherOf(config, environment);
  const further = [...ofFiles, ...problemsOf(() => wantsTracing(environment))];
  process.exitCode = runConfigCommand(command, look, further, {
    out: (text) => void process.stdout.write(text),
    error: (text) => void process.stderr.write(text),
  });
}

function furtherOf(config: AgentConfig, environment: Environment): string[] {
  const ofEngine = engineProblems(config, environment['DOCKER_HOST']);
  return [...ofEngine.map(({ message }) => message), ...problemsOf(...filesOf(config))];
}

function filesOf(config: AgentConfig) {
  const { AGENT_POLICY, AGENT_TRUSTED_KEYS, AGENT_KEY_SET } = config;
  return [
    () => (AGENT_POLICY === undefined ? NO_POLICY : readPolicyFile(AGENT_POLICY)),
    () => trustedKeysFrom(AGENT_TRUSTED_KEYS, AGENT_KEY_SET),
    () => checkTlsFiles(config),
    () => updateLoginOf(config),
  ];
}

function checkTlsFiles(config: AgentConfig): void {
  const { AGENT_TLS_CERT: cert, AGENT_TLS_KEY: key } = config;
  if (cert === undefined || key === undefined || !isSecure(config)) return;
  certificateFiles(cert, key, 'AGENT')();
}

/** What `read` gives; the process ends with one sentence where it throws ConfigError or PolicyError. */
export function orExit<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof PolicyError)) throw error;
    process.stderr.write(`podwright-agent: ${messageOf(error)}\n`);
    process.exit(CONFIG_REFUSED);
  }
}
