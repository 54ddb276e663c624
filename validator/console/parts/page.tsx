import { type ReactNode, useEffect, useRef } from 'react';
import { PageNotices } from './page-notices.tsx';

type PageProps = {
  title: string;
  /** Buttons and links beside the title. */
  actions?: ReactNode;
  /** Text under the title. */
  lead?: ReactNode;
  children: ReactNode;
};

/** A page with its title, which also names the browser's tab. A navigation moves the focus to the title. */
export function Page({ title, actions, lead, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Podwright`;
  }, [title]);
  useEffect(() => {
    // On the first load, the browser starts at the top of the document.
    if (document.body.dataset['navigated'] === 'true') heading.current?.focus();
    document.body.dataset['navigated'] = 'true';
  }, []);
  return (
    <>
      <header className="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {actions === undefined ? null : <div className="row">{actions}</div>}
        {lead === undefined ? null : <p className="lead">{lead}</p>}
      </header>
      <PageNotices />
      {children}
    </>
  );
}
