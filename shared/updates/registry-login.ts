/**
 * Reads the login for the registry of the agent's image: a file that only its owner can read, or a systemd credential.
 */
import { z } from 'zod';
import { RegistryAuth, registryAddressOf } from '../api/agent/images.ts';
import { ConfigError } from '../runtime/config.ts';
import { messageOf } from '../runtime/errors.ts';
import { readPrivateFile } from '../runtime/files.ts';

const MAX_BYTES = 64 * 1024;
const FORM = '{"username": "…", "password": "…"}';
const Login = z.strictObject({
  username: RegistryAuth.shape.username,
  password: RegistryAuth.shape.password,
});

/**
 * Returns the login in `path`, for the registry of `image`. Throws ConfigError if the file is missing, readable by
 * others or malformed; `variable` names the file. Errors never contain text of the file.
 */
export function readRegistryLogin(path: string, image: string, variable: string): RegistryAuth {
  const refuse = (why: string) => new ConfigError(`${variable}: ${why}`);
  let bytes: Uint8Array | null;
  try {
    bytes = readPrivateFile(path);
  } catch (error) {
    throw refuse(messageOf(error));
  }
  if (bytes === null) throw refuse(`there is no file ${path}`);
  const login = bytes.length > MAX_BYTES ? null : loginIn(Buffer.from(bytes).toString('utf8'));
  if (login === null) throw refuse(`${path} does not hold a login like ${FORM}`);
  return { host: registryAddressOf(image), ...login };
}

/** Parses the file. Drops the parsers' errors, which quote it. */
function loginIn(text: string): z.output<typeof Login> | null {
  try {
    return Login.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
