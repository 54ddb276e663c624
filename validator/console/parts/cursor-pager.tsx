type CursorPagerProps = {
  isFirst: boolean;
  hasNext: boolean;
  onFirst: () => void;
  onNext: () => void;
};

/** Moves through a list that the server continues after a cursor. */
export function CursorPager({ isFirst, hasNext, onFirst, onNext }: CursorPagerProps) {
  if (isFirst && !hasNext) return null;
  return (
    <nav className="row pager" aria-label="Pages">
      <button type="button" disabled={isFirst} onClick={onFirst}>
        First page
      </button>
      <button type="button" disabled={!hasNext} onClick={onNext}>
        Next page
      </button>
    </nav>
  );
}
