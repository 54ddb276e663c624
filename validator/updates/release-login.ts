/** The login for the registry of the agent's image. */
import type { RegistryAuth } from '#shared/api/agent/images.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import type { ValidatorConfig } from '../config.ts';

/** Null: the image is public, or none is named. Throws ConfigError that says what is wrong with the file. */
export function releaseLoginOf(config: ValidatorConfig): RegistryAuth | null {
  const { VALIDATOR_AGENT_IMAGE: image, VALIDATOR_AGENT_LOGIN_FILE: file } = config;
  if (image === undefined || file === undefined) return null;
  return readRegistryLogin(file, image, 'VALIDATOR_AGENT_LOGIN_FILE');
}
