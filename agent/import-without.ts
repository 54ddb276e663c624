/** Imports packages without those of their parts that the agent never calls: each would stay in memory for good. */
import { registerHooks } from 'node:module';

/** Any built-in module does: nothing of it is ever called. */
const STAND_IN = { url: 'node:events', format: 'builtin', shortCircuit: true };

/** What `load` imports, where each specifier in `unused`, as it is written there, gets an empty stand-in. */
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
