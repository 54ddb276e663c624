import { Suspense, useEffect, useState } from 'react';
import { ErrorBoundary } from '../parts/error-boundary.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';

const SearchWindow = lazyPart(() =>
  import('./search-window.tsx').then((module) => module.SearchWindow),
);

/** Opens the search with Ctrl-K or its button. The search is loaded when it is first opened. */
export function SearchDialog() {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setIsOpen(true);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)} aria-keyshortcuts="Control+K">
        Search <kbd>Ctrl K</kbd>
      </button>
      {isOpen ? (
        <ErrorBoundary>
          <Suspense>
            <SearchWindow onClose={() => setIsOpen(false)} />
          </Suspense>
        </ErrorBoundary>
      ) : null}
    </>
  );
}
