/** Who may pull the agent's new versions. */
import type { RegistryAuth } from '#shared/api/agent/images.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import type { AgentConfig } from '../config.ts';

/** The login for the registry of new versions; throws what is wrong with its file. */
export function updateLoginOf(config: AgentConfig): RegistryAuth | undefined {
  const { AGENT_UPDATE_LOGIN_FILE: file, AGENT_UPDATE_IMAGE: image } = config;
  if (file === undefined || image === undefined) return undefined;
  return readRegistryLogin(file, image, 'AGENT_UPDATE_LOGIN_FILE');
}
