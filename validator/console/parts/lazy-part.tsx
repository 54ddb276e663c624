import { type ComponentType, lazy } from 'react';
import { load } from '../browser/load.ts';

/** Loads a component when it is first shown: `lazyPart(() => import('./x.tsx').then(({ X }) => X))`. */
export function lazyPart<Props extends object>(importPart: () => Promise<ComponentType<Props>>) {
  return lazy(async () => ({ default: await load(importPart) }));
}
