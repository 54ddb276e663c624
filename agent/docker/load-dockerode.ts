/** Loads dockerode without the packages that it needs only for BuildKit sessions and ssh:// hosts. */
import { registerHooks } from 'node:module';

/** We never use either; together they are 19 MB of an idle agent's memory. */
const UNUSED = new Set(['@grpc/grpc-js', '@grpc/proto-loader', 'ssh2']);
/** Any built-in module does: nothing of it is ever called. */
const STAND_IN = { url: 'node:events', format: 'builtin', shortCircuit: true };

/** dockerode's constructor. */
export async function loadDockerode(): Promise<typeof import('dockerode')> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      UNUSED.has(specifier) ? STAND_IN : next(specifier, context),
  });
  try {
    return (await import('dockerode')).default;
  } finally {
    hooks.deregister();
  }
}
