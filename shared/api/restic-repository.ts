/** How restic is told where a repository is, by its environment alone: nothing of it in an argument, for all to read. */

const USERNAME = 'RESTIC_REST_USERNAME';
const PASSWORD = 'RESTIC_REST_PASSWORD';

/** As `RepositoryAccess` and `RepositoryPlace` have them: a location without credentials, and the variables of its back end. */
export type RepositoryAddress = { location: string; environment: Record<string, string> };

/**
 * RESTIC_REPOSITORY and the back end's variables. Not every version of restic reads those of the REST protocol: 0.14
 * takes such credentials in the address alone, so they go there for all. Its output never shows them.
 */
export function repositoryVariables({ location, environment }: RepositoryAddress) {
  const { [USERNAME]: username, [PASSWORD]: password, ...others } = environment;
  const match = /^(rest:https?:\/\/)([^/@]+(?:\/.*)?)$/.exec(location);
  if (match === null || username === undefined || password === undefined) {
    return { ...environment, RESTIC_REPOSITORY: location };
  }
  const [, scheme = '', rest = ''] = match;
  const user = `${encodeURIComponent(username)}:${encodeURIComponent(password)}`;
  return { ...others, RESTIC_REPOSITORY: `${scheme}${user}@${rest}` };
}
