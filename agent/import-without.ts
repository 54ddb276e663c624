/** Imports packages without those dependencies that the agent never calls, to save their memory. */
import { registerHooks } from 'node:module';

/** Any built-in module, because it is never called. */
const STAND_IN = { url: 'node:events', format: 'builtin', shortCircuit: true };

/** Runs `load`. Imports of the specifiers in `unused`, exactly as written in the package, resolve to a stand-in. */
export async function importWithout<T>(
  unused: ReadonlySet<string>,
  load: () => Promise<T>,
): Promise<T> {
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      unused.has(specifier) ? STAND_IN : next(specifier, context),
  });
  try {
    return await load();
  } finally {
    hooks.deregister();
  }
}
