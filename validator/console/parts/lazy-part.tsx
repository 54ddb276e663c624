import { type ComponentType, use, useState } from 'react';
import { load } from '../browser/load.ts';
import { isNewerVersion, reloadOnce } from '../browser/newer-version.ts';
import { FailureNotice } from './failure-notice.tsx';

type Import<Props> = () => Promise<ComponentType<Props>>;
type Loaded<Props> = { Part: ComponentType<Props> } | { error: unknown };

/**
 * Loads a component when it is first shown: `lazyPart(() => import('./x.tsx').then(({ X }) => X))`. If it does not load,
 * the error is in its place, with a button that tries again.
 */
export function lazyPart<Props extends object>(importPart: Import<Props>) {
  return shownWhenLoaded(() => load(importPart));
}

/**
 * Like `lazyPart`, for what has its own address: if a newer build has replaced the file, the browser loads that build at
 * this address.
 */
export function lazyPage<Props extends object>(importPage: Import<Props>) {
  return shownWhenLoaded(() =>
    load(importPage).catch((error: unknown) => {
      if (!isNewerVersion(error) || !reloadOnce()) throw error;
      return new Promise<never>(() => undefined);
    }),
  );
}

/** React's `lazy` would never load again after an error. */
function shownWhenLoaded<Props extends object>(loadPart: Import<Props>): ComponentType<Props> {
  let loading: Promise<Loaded<Props>> | undefined;
  const begin = () => {
    loading = loadPart().then(
      (Part) => ({ Part }),
      (error: unknown) => ({ error }),
    );
    return loading;
  };
  return function LazyPart(props: Props) {
    const [, setTries] = useState(0);
    const loaded = use(loading ?? begin());
    if ('Part' in loaded) return <loaded.Part {...props} />;
    const retry = () => {
      void begin();
      setTries((tries) => tries + 1);
    };
    return <FailureNotice error={loaded.error} retry={retry} />;
  };
}
