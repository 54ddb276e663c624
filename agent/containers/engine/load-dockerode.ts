/** Loads dockerode without the packages that it needs only for what we never ask of it. */
import { importWithout } from '../../import-without.ts';

/**
 * Those for BuildKit sessions and ssh:// hosts are 19 MB of an idle agent's memory, those for builds from a
 * folder 1 MB: our builds bring a tar.
 */
const UNUSED = new Set([
  '@grpc/grpc-js',
  '@grpc/proto-loader',
  'ssh2',
  'tar-fs',
  '@balena/dockerignore',
]);

/** dockerode's constructor. */
export async function loadDockerode(): Promise<typeof import('dockerode')> {
  const loaded = await importWithout(UNUSED, () => import('dockerode'));
  return loaded.default;
}
