/**
 * Files that systemd hands to a service (systemd.exec(5), LoadCredential=): a folder of its own for each service that runs, which
 * no other service and no user of the host can enter.
 */

const CREDENTIALS = '/run/credentials/';
const OF_OUR_SERVICES = /^\/run\/credentials\/podwright[a-z-]*\.service\//;

/** Whether none but its service can reach the file: the bits of its mode may then be those of an access list. */
export function isCredential(path: string): boolean {
  return path.startsWith(CREDENTIALS);
}

/**
 * The environment with the credentials that it names where this process has them: it may be another service than theirs, and be
 * given the same, as the switcher of an agent's release or the look at a configuration before its service is started.
 */
export function withOwnCredentials(
  environment: Record<string, string | undefined>,
): Record<string, string | undefined> {
  const { CREDENTIALS_DIRECTORY: folder } = environment;
  if (folder === undefined) return environment;
  const own = Object.entries(environment).map(([name, value]) => [
    name,
    value?.replace(OF_OUR_SERVICES, () => `${folder}/`),
  ]);
  return Object.fromEntries(own);
}
