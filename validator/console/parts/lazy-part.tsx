import { type ComponentType, lazy } from 'react';

/** Loads a component when it is first shown: `lazyPart(() => import('./x.tsx').then(({ X }) => X))`. */
export function lazyPart<Props extends object>(load: () => Promise<ComponentType<Props>>) {
  return lazy(async () => ({ default: await load() }));
}
