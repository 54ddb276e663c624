/** Reads the files that the agent's variables name, and implements `--check-config` and `--print-config`. */
import {
  acceptedConfig,
  type ConfigCommand,
  type Environment,
  errorMessages,
  inspectConfig,
  runConfigCommand,
} from '#shared/runtime/config.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import { isTracingConfigured } from '#shared/telemetry/tracing.ts';
import { certificateFromFiles } from '#shared/tls/listener-certificate.ts';
import { AGENT_CONFIG, type AgentConfig, engineProblems, isSecure } from './config.ts';
import { trustedKeysFrom } from './identity/trusted-keys.ts';
import { NO_POLICY, type ProviderPolicy, readPolicyFile } from './pods/provider-policy.ts';
import { updateLoginOf } from './updates/updates-from-config.ts';

/** Throws PolicyError. */
export function policyOf({ AGENT_POLICY: path }: AgentConfig): ProviderPolicy {
  return path === undefined ? NO_POLICY : readPolicyFile(path);
}

/** Throws ConfigError for an invalid key set. */
export function trustedKeysOf(config: AgentConfig): readonly TrustedKey[] {
  return trustedKeysFrom(config.AGENT_TRUSTED_KEYS, config.AGENT_KEY_SET);
}

/** Returns the configuration. Throws ConfigError with all problems, including those of the files that it names. */
export function readWholeConfig(environment: Environment): AgentConfig {
  const look = inspectConfig(AGENT_CONFIG, environment);
  return acceptedConfig(look, furtherProblems(look.config, environment));
}

/** Runs `--check-config` or `--print-config`, including problems of the files that the variables name. */
export function showConfiguration(command: ConfigCommand, environment: Environment): void {
  const look = inspectConfig(AGENT_CONFIG, environment);
  const further = furtherProblems(look.config, environment);
  process.exitCode = runConfigCommand(command, look, further, {
    out: (text) => void process.stdout.write(text),
    error: (text) => void process.stderr.write(text),
  });
}

function furtherProblems(config: AgentConfig | null, environment: Environment): string[] {
  const ofTracing = errorMessages(() => isTracingConfigured(environment));
  if (config === null) return ofTracing;
  const ofEngine = engineProblems(config, environment['DOCKER_HOST']);
  return [
    ...ofEngine.map(({ message }) => message),
    ...errorMessages(...filesOf(config)),
    ...ofTracing,
  ];
}

function filesOf(config: AgentConfig) {
  return [
    () => policyOf(config),
    () => trustedKeysOf(config),
    () => checkTlsFiles(config),
    () => updateLoginOf(config),
  ];
}

/** Throws ConfigError if the listener's certificate cannot be used. */
export function checkTlsFiles(config: AgentConfig): void {
  const { AGENT_TLS_CERT: cert, AGENT_TLS_KEY: key } = config;
  if (cert === undefined || key === undefined || !isSecure(config)) return;
  certificateFromFiles(cert, key, 'AGENT')();
}
