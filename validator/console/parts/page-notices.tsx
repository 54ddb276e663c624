import {
  createContext,
  Fragment,
  type ReactNode,
  use,
  useCallback,
  useEffect,
  useId,
  useState,
} from 'react';

type Notice = { key: string; content: ReactNode };
type Report = (id: string, notice: Notice | null) => void;

/** Two contexts, so that parts which report a notice are not rendered again when the notices change. */
const ReportContext = createContext<Report>(() => undefined);
const NoticesContext = createContext<ReadonlyMap<string, Notice>>(new Map());

/** Collects notices that concern the whole page, which `Page` shows below its title. */
export function PageNoticesProvider({ children }: { children: ReactNode }) {
  const [notices, setNotices] = useState<ReadonlyMap<string, Notice>>(new Map());
  const report = useCallback<Report>(
    (id, notice) =>
      setNotices((before) => {
        const others = [...before].filter(([key]) => key !== id);
        return new Map(notice === null ? others : [...others, [id, notice]]);
      }),
    [],
  );
  return (
    <ReportContext value={report}>
      <NoticesContext value={notices}>{children}</NoticesContext>
    </ReportContext>
  );
}

/**
 * Shows a notice below the title of the page while the caller is shown; null for none. Memoize `content`. Notices with
 * the same key are shown once.
 */
export function usePageNotice(key: string, content: ReactNode): void {
  const id = useId();
  const report = use(ReportContext);
  useEffect(() => {
    if (content === null) return;
    report(id, { key, content });
    return () => report(id, null);
  }, [report, id, key, content]);
}

export function PageNotices() {
  const notices = use(NoticesContext);
  const byKey = new Map([...notices.values()].map(({ key, content }) => [key, content]));
  return [...byKey].map(([key, content]) => <Fragment key={key}>{content}</Fragment>);
}
